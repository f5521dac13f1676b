# In a folder that will be another system's root, paths are only text, and links are written as they will be read there.
# ruff: noqa: PTH101, PTH102, PTH103, PTH105, PTH110, PTH112, PTH115, PTH120, PTH211
"""The file system of a machine: this computer's programs, read-only, and separate copies of everything else.

The machine writes to a disk in memory that outlives a power cut, like a real disk. Its home and the shared folder are in the
stack's folder. Nothing of this computer's own /etc/slurm, /var or /home is visible in the machine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpucourse.local.machines import kernel

_COPIED = (  # the files of /etc that programs need to run; names of users and groups are changed afterwards
    "alternatives", "bash.bashrc", "debian_version", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "login.defs",
    "lsb-release", "mime.types", "nsswitch.conf", "os-release", "pam.d", "passwd", "group", "profile", "profile.d", "protocols",
    "rpc", "security", "services", "shells", "ssl", "pki", "crypto-policies", "terminfo",
)  # fmt: skip
_FOLDERS = (
    "usr", "etc/slurm", "etc/munge", "etc/ssh", "var/tmp", "var/lib/munge", "var/lib/slurm/slurmctld", "var/lib/slurm/slurmd",
    "var/log/munge", "var/log/slurm", "run", "root", "tmp", "proc", "sys", "dev", "home", "shared",
)  # fmt: skip
_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_SYSTEM_USERS = {"munge": 64029, "slurm": 64030, "sshd": 64028}
_SECRET = 0o600


def build(root: str, machine: Mapping[str, Any]) -> None:
    """Create and mount the machine's file system at `root`. The file system is visible only in this mount namespace. Raises
    OSError."""
    for folder in _FOLDERS:
        os.makedirs(f"{root}/{folder}", exist_ok=True)
    for folder, mode in (("tmp", 0o1777), ("var/tmp", 0o1777), ("root", 0o755)):
        os.chmod(f"{root}/{folder}", mode)
    kernel.bind(root, root)
    _mount_programs(root, str(machine.get("layer", "")))
    _mount_system(root, gpus=int(machine["gpus"]))
    for source, place in ((machine["home"], home_of(str(machine["user"]))), (machine["shared"], "/shared")):
        os.makedirs(f"{root}{place}", exist_ok=True)
        kernel.bind(source, f"{root}{place}")
    for folder in machine["programs"]:  # after home: they may be inside it
        _make_place(f"{root}{folder}", int(machine["user_id"]), int(machine["group_id"]))
        kernel.bind(folder, f"{root}{folder}", read_only=True, recursive=True)
    _write_names(root, machine)


def home_of(user: str) -> str:
    """Return the home folder of the machine's only user."""
    return "/root" if user == "root" else f"/home/{user}"


def write(path: str, text: str, *, mode: int = 0o644, owner: tuple[int, int] = (0, 0)) -> bool:
    """Write a file of the machine in one step. Return whether it changed."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if Path(path).read_text(encoding="utf-8") == text:
            return False
    aside = f"{path}.new"
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        os.fchown(handle, *owner)
        os.fchmod(handle, mode)
        file.write(text)
    os.replace(aside, path)
    return True


def ids(name: str, users: str = "/etc/passwd") -> tuple[int, int]:
    """Return the user ID and the group ID of a system user, from the machine's own list."""
    for line in Path(users).read_text(encoding="utf-8", errors="replace").splitlines():
        entry = line.split(":")
        if entry[0] == name and len(entry) > 3:
            return int(entry[2]), int(entry[3])
    raise OSError(f"{users} has no user {name}")


def _make_place(path: str, user_id: int, group_id: int) -> None:
    """Make a folder as a mount point. A new folder belongs to the user, who must be able to remove it from the home folder."""
    if not os.path.isdir(path):
        _make_place(os.path.dirname(path), user_id, group_id)
        os.mkdir(path)
        os.chown(path, user_id, group_id)


def _mount_programs(root: str, layer: str) -> None:
    if layer:  # packages that were unpacked aside are mounted over the programs of this computer
        os.chdir(layer)  # a name in `lowerdir` must contain neither colon nor comma
        kernel.mount("overlay", f"{root}/usr", "overlay", kernel.READ_ONLY, "lowerdir=usr:/usr")
        for folder in kernel.find_mounts_below("/usr"):  # an overlay does not show what is mounted in it
            kernel.bind(folder, f"{root}{folder}", read_only=True, recursive=True)
    else:
        kernel.bind("/usr", f"{root}/usr", read_only=True, recursive=True)
    for name in _LINKED:
        system_path = Path("/") / name
        if system_path.is_symlink() and not os.path.lexists(f"{root}/{name}"):
            os.symlink(os.readlink(system_path), f"{root}/{name}")
        elif system_path.is_dir() and not system_path.is_symlink():
            os.makedirs(f"{root}/{name}", exist_ok=True)
            kernel.bind(str(system_path), f"{root}/{name}", read_only=True, recursive=True)


def _mount_system(root: str, *, gpus: int) -> None:
    kernel.mount("proc", f"{root}/proc", "proc")
    with contextlib.suppress(OSError):  # inside some containers it may not be mounted; nothing here needs it
        kernel.mount("sysfs", f"{root}/sys", "sysfs", kernel.READ_ONLY)
    kernel.mount("run", f"{root}/run", "tmpfs", options="mode=755,size=16m")
    kernel.mount("dev", f"{root}/dev", "tmpfs", options="mode=755,size=1m")
    for folder, kind, options in (
        ("pts", "devpts", "newinstance,ptmxmode=0666,mode=620"),
        ("shm", "tmpfs", "mode=1777"),
    ):
        os.makedirs(f"{root}/dev/{folder}")
        kernel.mount(folder, f"{root}/dev/{folder}", kind, options=options)
    for name in _DEVICES:
        _show_device(f"/dev/{name}", f"{root}/dev/{name}")
    for number in range(gpus):  # an empty device: what Slurm counts as a GPU
        _show_device("/dev/null", f"{root}/dev/nvidia{number}")
    for name, target in {
        "ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
    }.items():  # fmt: skip
        os.symlink(target, f"{root}/dev/{name}")
    for name in ("run", "lock"):
        if not os.path.lexists(f"{root}/var/{name}"):
            os.symlink("../run" if name == "run" else "../run/lock", f"{root}/var/{name}")
    for folder in ("sshd", "munge", "lock"):
        os.makedirs(f"{root}/run/{folder}")


def _show_device(source: str, place: str) -> None:
    Path(place).touch()
    kernel.bind(source, place)


def _write_names(root: str, machine: Mapping[str, Any]) -> None:
    etc = f"{root}/etc"
    if not os.path.exists(f"{etc}/passwd"):
        for name in _COPIED:
            _copy(Path("/etc") / name, Path(etc) / name)
    write(f"{etc}/hostname", f"{machine['name']}\n")
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in machine["addresses"].items())]
    write(f"{etc}/hosts", "".join(f"{line}\n" for line in lines))
    write(f"{etc}/resolv.conf", "")  # a resolver without an answer costs ten seconds at every start of torch
    write(
        f"{etc}/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\nprotocols: files\n"
    )
    _write_users(etc, str(machine["user"]), int(machine["user_id"]), int(machine["group_id"]))


def _write_users(etc: str, user: str, user_id: int, group_id: int) -> None:
    people = _entries(f"{etc}/passwd")
    groups = _entries(f"{etc}/group")
    for name, number in _SYSTEM_USERS.items():
        people.setdefault(name, f"{name}:x:{number}:{number}::/nonexistent:/usr/sbin/nologin")
        groups.setdefault(name, f"{name}:x:{number}:")
    people = {name: line for name, line in people.items() if name != user and line.split(":")[2] != str(user_id)}
    people[user] = f"{user}:x:{user_id}:{group_id}::{home_of(user)}:/bin/bash"
    if not any(line.split(":")[2] == str(group_id) for line in groups.values()):
        groups[user] = f"{user}:x:{group_id}:"
    write(f"{etc}/passwd", "".join(f"{line}\n" for line in people.values()))
    write(f"{etc}/group", "".join(f"{line}\n" for line in groups.values()))
    write(f"{etc}/shadow", f"{user}:*:19000:0:99999:7:::\n", mode=_SECRET)  # not locked, and no password either


def _entries(path: str) -> dict[str, str]:
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines() if os.path.exists(path) else []
    return {line.split(":")[0]: line for line in lines if line.count(":") >= 3}


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder if this user may read it. This computer's private files are therefore left out."""
    with contextlib.suppress(OSError, shutil.Error):
        if source.is_symlink():
            target.symlink_to(os.readlink(source))
        elif source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore_dangling_symlinks=True)
        elif source.exists():
            shutil.copyfile(source, target)
