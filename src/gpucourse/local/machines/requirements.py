"""Test whether this computer can run simulated machines, and find the exact command that adds what is missing."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

from gpucourse.local.machines import link, userspace

_PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
_OUTSIDE = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux"}  # programs that run outside the machines
_INSIDE = {"sshd": "openssh-server"}
_SLURM = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}
_TRIAL = "mount -t proc proc /proc && mount -t tmpfs trial /tmp && ip link add trial type bridge"
_LAYER_TRIAL = 'cd "$1" && mount -t overlay trial /usr -o ro,lowerdir=usr:/usr && slurmctld -V && munged -V'

_SWITCHES = (  # settings of the kernel: the value that forbids, and one that allows
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    *((f"user.max_{kind}_namespaces", "0", "10000") for kind in ("user", "mnt", "net", "uts", "ipc", "pid")),
)


class Lacking(Exception):
    """This computer lacks something that machines need. The message says what is missing, and `remedy` is the command to
    type."""

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


class NoNamespaces(Lacking):
    """This computer does not let this user, or any user, create namespaces."""


def require(*, slurm: bool, cable: str = "", layer: Path | None = None) -> None:
    """Check that this computer can run machines. Raises Lacking.

    `slurm`: whether the machines run Slurm.
    `cable`: the speed of their cables.
    `layer`: a folder of unpacked packages, whose programs may be used inside machines.
    """
    if not sys.platform.startswith("linux"):
        raise Lacking("separate machines need Linux namespaces", "use a Linux computer, or: --target aws")
    host_programs = dict(_OUTSIDE) if cable else {name: package for name, package in _OUTSIDE.items() if name != "tc"}
    within = f"{layer}/usr/sbin:{layer}/usr/bin:{_PATH}" if layer else _PATH
    missing = _list_missing(host_programs, _PATH) | _list_missing(_INSIDE | (_SLURM if slurm else {}), within)
    if missing:
        raise Lacking(f"not installed here: {', '.join(missing)}", install_command(slurm=slurm, packages=set(missing.values())))
    _require_namespaces()
    if layer:
        _require_layer(layer)
    if cable:
        _require_link(link.parse(cable))


def install_command(*, slurm: bool, packages: set[str]) -> str:
    """Return the command that installs these packages on this computer."""
    return f"sudo apt-get install --no-install-recommends {' '.join(_add_library(packages) if slurm else sorted(packages))}"


def has_account() -> bool:
    """Return whether this user ID has an account. Without one, as in many containers, Slurm accepts no jobs."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def account_command() -> str:
    """Return the command that creates an account for this user ID."""
    return f"sudo useradd --uid {os.getuid()} learner"


def slurm_missing() -> set[str]:
    """Return the packages of Slurm's programs that are not installed here."""
    return set(_list_missing(_SLURM, _PATH).values())


def unpackable() -> list[str]:
    """Return the packages of a Slurm cluster that are not installed here. Machines can use them without installing them."""
    return _add_library(set(_list_missing(_INSIDE | _SLURM, _PATH).values()))


def find_program(name: str, path: str = _PATH) -> str:
    """Return the path of a program, or an empty string if it is not installed. Root's folders (sbin) are searched too."""
    return shutil.which(name, path=path) or ""


def _list_missing(programs: dict[str, str], path: str) -> dict[str, str]:
    return {name: package for name, package in programs.items() if not find_program(name, path)}


def _add_library(packages: set[str]) -> list[str]:
    # Without this library 23.11 fails to load a plugin and then reports wrong reasons for waiting jobs.
    return sorted(packages | ({_pmix()} if packages & set(_SLURM.values()) else set()))


def _pmix() -> str:
    try:
        lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "libpmix2"
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    release, name = facts.get("VERSION_ID", "").strip('"'), facts.get("ID", "").strip('"')
    newer = (name == "ubuntu" and release >= "24.04") or (name == "debian" and release.isdecimal() and int(release) >= 13)
    return "libpmix2t64" if newer else "libpmix2"


def _require_namespaces() -> None:
    if os.geteuid() != 0:
        if shutil.which("newuidmap") is None:
            raise NoNamespaces("not installed here: newuidmap", "sudo apt-get install uidmap")
        try:
            userspace.read_lent_ids("/etc/subuid", os.getuid())
            userspace.read_lent_ids("/etc/subgid", os.getgid())
        except OSError as error:
            lend = f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {os.getuid()}"
            raise NoNamespaces(str(error), lend if has_account() else account_command()) from error
    refusal = _try(_TRIAL, "-m", "-n", "-u", "-i", "-p", "--fork")
    if refusal is not None:
        raise NoNamespaces(
            f"this computer does not let you create namespaces: {refusal[:160] or 'unshare refused'}", _way_to_allow()
        )


def _try(script: str, *namespaces: str, argument: str = "", text: str = "") -> str | None:
    """Run a shell script with root privileges in new namespaces. Return None if it succeeds, otherwise its standard error.

    `text`: the script's standard input.
    """
    user = [] if os.geteuid() == 0 else ["-U", "-r"]
    trial = subprocess.run(
        ["unshare", *user, *namespaces, "sh", "-c", script, "sh", argument],
        env={"PATH": _PATH}, input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return trial.stderr.strip() if trial.returncode else None


def _require_layer(layer: Path) -> None:
    """Check that Slurm's programs start when the packages are mounted over /usr, as in the machines. Raises Lacking."""
    reason = _try(_LAYER_TRIAL, "-m", argument=str(layer))
    if reason is not None:
        remedy = install_command(slurm=True, packages=set(unpackable()))
        if "mount" not in reason:  # they were fetched for a different system
            remedy = f"rm -r '{layer}', then type the command again with --unpack-slurm; or: {remedy}"
        raise Lacking(f"the packages in {layer} cannot be used: {reason[:200] or 'they do not start'}", remedy)


def _way_to_allow() -> str:
    """Return the setting that forbids namespaces here, as far as the kernel shows it, and the command that allows them."""
    for name, forbidding, allowing in _SWITCHES:
        try:
            value = Path("/proc/sys", *name.split(".")).read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if value == forbidding and (name.startswith("user.max") or os.geteuid() != 0):
            return f"{name} is {value} here: sudo sysctl -w {name}={allowing}"
    if os.geteuid() != 0:
        return "type the command again with sudo"
    return "root has no CAP_SYS_ADMIN or CAP_NET_ADMIN here: start the container with docker run --privileged"


def _require_link(speed: link.NetworkLink) -> None:
    lines = "".join(f"{line}\n" for line in link.shape(speed, "trial", delayed=True))
    error = _try("ip link add trial type veth peer name other && tc -batch -", "-n", text=lines)
    if error is not None and speed.delay_ms:
        raise Lacking(
            "this kernel has no netem, so a link cannot have a delay",
            f"leave out the delay: {link.NetworkLink(bits=speed.bits)}, or: sudo modprobe sch_netem",
        )
    if error is not None:
        raise Lacking(f"this kernel cannot limit a link: {error[:120]}", "sudo modprobe sch_tbf")
