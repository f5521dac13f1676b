"""The image that test machines boot: Debian from this computer's own apt sources, built once and kept.

It is what AWS's image is to a node, as far as that can be had: a kernel, systemd, OpenSSH, cloud-init with its data source Ec2,
the user `ubuntu`, Slurm's packages, and an NFS server that starts where the kernel's command line says so. Stand-ins are
`nvidia-smi`, which tells of a T4, `torch`, which sees it, and an empty package libpmix2t64, which Ubuntu 24.04 has and Debian
12 does not.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

SIZE = "4G"
PACKAGES = (
    "linux-image-cloud-amd64",
    "systemd-sysv",
    "libpam-systemd",
    "systemd-resolved",
    "dbus",
    "openssh-server",
    "sudo",
    "cloud-init",
    "python3",
    "iproute2",
    "nfs-common",
    "nfs-kernel-server",
    "munge",
    "slurmctld",
    "slurmd",
    "slurm-client",
)
LATE = ("munge", "slurmctld", "slurmd", "nfs-server", "rpcbind.socket", "rpcbind.service")
"""What starts only where the set-up of a node, or the kernel's command line, starts it."""

# Of the kernel's drivers only those without which the root disk cannot be mounted: an initrd that unpacks in a second.
_INITRD = """\
mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d"
printf 'MODULES=list\\nCOMPRESS=gzip\\n' >"$1/etc/initramfs-tools/conf.d/boot"
printf '%s\\n' virtio_pci virtio_blk ext4 crc32c_generic crc32c_intel >"$1/usr/share/initramfs-tools/modules.d/boot"
"""
FILES = {
    "etc/cloud/cloud.cfg.d/95-ec2.cfg": (
        "datasource_list: [Ec2]\n"
        "system_info:\n"
        "  default_user: {name: ubuntu, lock_passwd: true, shell: /bin/bash, sudo: ['ALL=(ALL) NOPASSWD:ALL']}\n"
        "  network: {renderers: [networkd]}\n"
        "ssh_genkeytypes: [ecdsa, ed25519]\n"  # one of RSA, which Ubuntu has as well, takes seven seconds here
        "cloud_config_modules: [set-passwords, runcmd]\n"  # the others want locales, GRUB, apt's sources
        "growpart: {mode: 'off'}\n"
        "resize_rootfs: false\n"
    ),
    "etc/fstab": "/dev/vda / ext4 defaults 0 0\n",
    "etc/machine-id": "",
    "etc/exports": "/srv/shared *(rw,fsid=0,no_root_squash,no_subtree_check,insecure,async)\n",
    "etc/tmpfiles.d/nvidia.conf": "c /dev/nvidia0 0666 root root - 1:3\n",
    "usr/lib/python3/dist-packages/torch.py": (
        "class cuda:\n    device_count = staticmethod(lambda: 1)\nclass version:\n    cuda = 'none: a stand-in'\n"
        "__version__ = '0.0'\n"
    ),
}
PROGRAMS = {
    "usr/bin/nvidia-smi": (
        "#!/bin/sh\n"
        'case "$*" in *--list-gpus*|*-L*) echo "GPU 0: Tesla T4 (a stand-in)";; *utilization*) echo 0;; *driver*) echo 0.0;; '
        "*name*) echo Tesla T4;; esac\n"
    ),
}
PYTHON = "/opt/pytorch/bin/python"
LINKS = {PYTHON[1:]: "/usr/bin/python3", "etc/resolv.conf": "../run/systemd/resolve/stub-resolv.conf"}
MASKED = (
    *("e2scrub_reap.service", "e2scrub_all.timer", "fstrim.timer", "getty@tty1"),
    *(f"modprobe@{name}.service" for name in ("configfs", "dm_mod", "drm", "efi_pstore", "fuse", "loop")),
)
"""What takes seconds of processor time, and has nothing to do with the set-up."""
_EMPTY_PACKAGE = (
    "Package: libpmix2t64\nVersion: 5\nArchitecture: amd64\nMaintainer: nobody <nobody@localhost>\nDescription: empty\n"
)


@dataclass(frozen=True)
class Image:
    """What a machine boots from; nobody writes to it."""

    disk: Path
    kernel: Path
    initrd: Path


def cached_image() -> Image:
    """The image; built, in minutes, where there is none of this recipe. It takes 0.5 GB below the cache folder.

    Its name is made from the recipe (this file) and the sources. Raises LookupError where this computer has no apt sources of
    Debian, RuntimeError with what a program said where it cannot be built.
    """
    sources = debian_sources()
    recipe = hashlib.sha256(Path(__file__).read_bytes() + sources.encode()).hexdigest()[:16]
    folder = cache_folder() / f"boot-{recipe}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "boot.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as aside:
                build(Path(aside), sources)
                (Path(aside) / "image").rename(folder)
    return Image(folder / "disk.raw", folder / "vmlinuz", folder / "initrd")


def cache_folder() -> Path:
    """Where images stay, never in the repository. `make slow` gives its tests an XDG_CACHE_HOME of their own and names the
    lasting one by GPUCOURSE_TESTS_CACHE."""
    named = os.environ.get("GPUCOURSE_TESTS_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named) / "gpucourse-tests"


def debian_sources() -> str:
    """This computer's own sources of Debian's packages, as apt reads them. Raises LookupError where it has none."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]
    listed = subprocess.run([*command, "Origin: Debian"], capture_output=True, text=True, check=True).stdout.split("\n")
    lines = sorted({f"deb {line}\n" for line in listed if re.fullmatch(r"\S+ \S+ \S+", line)})
    if not lines:
        raise LookupError("apt on this computer lists no packages of Debian: sudo apt-get update, on Debian")
    return "".join(lines)


def build(aside: Path, sources: str) -> None:
    """Make `image` in this folder: disk.raw, vmlinuz, initrd."""
    root, image = aside / "root", aside / "image"
    image.mkdir()
    release = min(sources.split()[2::4], key=len)  # bookworm, not bookworm-security
    drop = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale", "info")]
    command = ["mmdebstrap", "--variant=apt", f"--include={','.join(PACKAGES)}", f"--essential-hook={_INITRD}", *drop]
    # What mmdebstrap mounts below the folder ends with it, however it ends: nothing of this computer is there to be removed.
    _run(["unshare", "--mount", *command, release, str(root), "-"], stdin=sources)
    _furnish(root, aside)
    for name, pattern in (("vmlinuz", "vmlinuz-*"), ("initrd", "initrd.img-*")):
        [file] = (root / "boot").glob(pattern)
        shutil.move(file, image / name)
    _run(["truncate", "--size", SIZE, str(image / "disk.raw")])
    _run(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(image / "disk.raw")])


def _furnish(root: Path, aside: Path) -> None:
    """What the image has beside its packages."""
    for path, text in (FILES | PROGRAMS).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)  # a link of the image's would lead out of it
        (root / path).write_text(text)
    for path in PROGRAMS:
        (root / path).chmod(0o755)
    (root / "srv/shared").mkdir()
    for path, target in LINKS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        (root / path).symlink_to(target)
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    (root / "etc/apt/sources.list").unlink(missing_ok=True)  # nothing is fetched in a test
    shutil.rmtree(root / "etc/apt/sources.list.d", ignore_errors=True)
    package = aside / "package"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "DEBIAN/control").write_text(_EMPTY_PACKAGE)
    _run(["dpkg-deb", "--build", "--root-owner-group", str(package), str(root / "empty.deb")])
    _run(["chroot", str(root), "dpkg", "--install", "/empty.deb"])
    (root / "empty.deb").unlink()
    for unit in LATE:
        _run(["chroot", str(root), "systemctl", "disable", unit])
    _run(["chroot", str(root), "systemctl", "enable", "systemd-networkd"])
    _run(["chroot", str(root), "systemctl", "mask", *MASKED])


def _run(command: list[str], stdin: str = "") -> None:
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}")
