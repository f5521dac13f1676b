"""Use Slurm without installing it. A plain user fetches Slurm's packages and unpacks them into a folder of the user's cache.

Only simulated machines see the packages, mounted over their /usr. Nothing in the system is changed, and no special privileges
are needed. apt-get itself checks the download against the signatures of the system's own sources.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpucourse.errors import HomeMissing, MissingError, StorageError
from gpucourse.model.event import Note, Watcher
from gpucourse.storage import storing
from gpucourse.workspace.locate import personal_cache
from gpucourse.workspace.lock import hold_lock

_LIST = "packages.txt"
_MAX_S = 600.0
_ALTERNATIVES = ("slurmctld", "slurmd", "slurmstepd")  # Debian's packages leave creating these names to update-alternatives
_MERGED = ("bin", "sbin", "lib", "lib64")  # folders into which packages may still put files that belong in /usr
_OUT_OF_DATE = re.compile(r"Unable to locate package|has no installation candidate|404 +Not Found|Can't find a source")
_NO_NETWORK = re.compile(r"resolving|resolve|[Cc]ould not connect|Unable to connect|[Nn]etwork is unreachable|timed out")
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|not have enough free space|don't have enough free space")


class _ListsOutOfDate(MissingError):
    """apt's lists of packages are missing, or name packages that no longer exist."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder in which packages are unpacked. It has a subfolder for each version of Slurm."""
    return personal_cache(environ) / "slurm"


def can_unpack(environ: Mapping[str, str]) -> bool:
    """Return whether this system has apt-get and dpkg, which fetch and unpack packages."""
    return all(shutil.which(program, path=environ.get("PATH")) for program in ("apt-get", "dpkg"))


def find_unpacked(environ: Mapping[str, str]) -> Path | None:
    """Return the newest completely unpacked folder, or None if there is none."""
    try:
        folders = [path.parent for path in cache_folder(environ).glob(f"[!.]*/{_LIST}")]
    except HomeMissing:
        return None
    return max(folders, key=lambda folder: (folder / _LIST).stat().st_mtime_ns, default=None)


def unpack(environ: Mapping[str, str], packages: Sequence[str], watch: Watcher) -> Path:
    """Fetch these packages and the dependencies that this system lacks. Return the folder in which they are unpacked.

    If another command is unpacking them now, wait and return its result. Raises MissingError, StorageError.
    """
    base = cache_folder(environ)
    with hold_lock(base / "lock", "unpacking Slurm's packages", wait_s=_MAX_S), storing(base):
        if (unpacked_before := find_unpacked(environ)) is not None:
            return unpacked_before
        for leftover in base.glob(".new-*"):  # left by a command that was killed
            shutil.rmtree(leftover)
        aside = Path(tempfile.mkdtemp(prefix=".new-", dir=base))
        try:
            files = _fetch_packages(environ, packages, aside, watch)
            layer = aside / "layer"
            _lay_out(environ, files, layer)
            (layer / _LIST).write_text("".join(f"{file.stem}\n" for file in files), encoding="utf-8")
            folder = base / _version(files)
            layer.rename(folder)
        finally:
            shutil.rmtree(aside)
    return folder


def _fetch_packages(environ: Mapping[str, str], packages: Sequence[str], aside: Path, watch: Watcher) -> list[Path]:
    """Return the files of the packages. If the system's package lists are missing or old, fetch new lists into another
    folder."""
    try:
        return _download(environ, packages, aside / "packages")
    except _ListsOutOfDate:
        watch(Note(text="apt's lists of packages are missing or old here: fetching new ones for this command only"))
    apt_folder = aside / "apt"
    (apt_folder / "lists" / "partial").mkdir(parents=True)
    own_lists = ("-o", f"Dir::State::Lists={apt_folder / 'lists'}", "-o", f"Dir::Cache={apt_folder}")
    _run(environ, ["apt-get", "-q", *own_lists, "update"], aside)
    return _download(environ, packages, aside / "packages", own_lists)


def _download(environ: Mapping[str, str], packages: Sequence[str], folder: Path, options: Sequence[str] = ()) -> list[Path]:
    listing = _run(environ, ["apt-get", *options, "install", "-s", "--no-install-recommends", *packages], folder.parent)
    names = re.findall(r"^Inst (\S+)", listing, re.MULTILINE)
    if not names:
        raise MissingError(
            f"apt-get reports {', '.join(packages)} as installed here, but some of their programs are missing",
            hint=f"sudo apt-get install --reinstall {' '.join(packages)}",
        )
    folder.mkdir(exist_ok=True)
    # When root runs it, apt-get would download as a separate user, who may not write here.
    _run(environ, ["apt-get", "-q", *options, "-o", "APT::Sandbox::User=root", "download", *names], folder)
    return sorted(folder.glob("*.deb"))


def _lay_out(environ: Mapping[str, str], files: Sequence[Path], layer: Path) -> None:
    """Unpack the packages so that all their files are in `usr`."""
    for name in _MERGED:
        (layer / "usr" / name).mkdir(parents=True)
        (layer / name).symlink_to(f"usr/{name}")
    for file in files:
        _run(environ, ["dpkg", "-x", str(file), str(layer)], layer)
    for name in _ALTERNATIVES:
        link = layer / "usr" / "sbin" / name
        if not link.exists() and link.with_name(f"{name}-wlm").exists():
            link.symlink_to(f"{name}-wlm")


def _version(files: Sequence[Path]) -> str:
    """Return Slurm's own version from the names of the files. For example, slurmctld_22.05.8-4+deb12u3_amd64.deb has
    22.05.8."""
    first = next((file for file in files if file.name.startswith("slurm")), files[0])
    return first.name.split("_")[1].rpartition("%3a")[2].rsplit("-", 1)[0]


def _run(environ: Mapping[str, str], argv: Sequence[str], folder: Path) -> str:
    """Run the command and return its output. Raises MissingError or StorageError with the command's last output and a
    remedy."""
    try:
        process = subprocess.run(
            argv,
            cwd=folder,
            env={**environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_MAX_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise MissingError(
            f"there is no {argv[0]} here: packages can be unpacked only on Debian and Ubuntu",
            hint="install slurmctld, slurmd, Slurm's commands and munged with this system's package manager; or: --target aws",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise MissingError(
            f"{argv[0]} is still running after {_MAX_S:.0f} s", hint="check the network, then type the command again"
        ) from error
    if process.returncode:
        raise _failure(argv[0], f"{process.stdout}\n{process.stderr}", cache_folder(environ))
    return process.stdout


def _failure(program: str, output: str, folder: Path) -> MissingError:
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["nothing"]
    first = next((line for line in lines if line.startswith(("E: ", "dpkg", "tar: "))), lines[-1])
    message = f"Slurm's packages cannot be fetched: {program} says: {first[:300]}"
    if _NO_SPACE.search(output):
        return StorageError(
            f"no space left to unpack Slurm's packages in {folder}", hint=f"free 100 MB there: df -h '{folder}'"
        )
    kind = _ListsOutOfDate if _OUT_OF_DATE.search(first) else MissingError
    if _NO_NETWORK.search(output):
        return kind(message, hint="connect this computer to the internet, then type the command again")
    return kind(message, hint="`apt-get install -s slurmctld slurmd` shows more; the package may be in `universe`")
