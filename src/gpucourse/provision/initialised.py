"""What `terraform init` left in a stack's folder: whether it still holds, and how the next stack with the same files gets it.

`init` compares each provider with the checksums that the course pins. Terraform would compute them anew at every command: half
a second of a processor for the 700 MB of the AWS provider. So they are put aside once they have held, and the size and the
date of each file stand for them: whatever changes, `init` comes again, with the pins.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpucourse.workspace.files import write_text

_LOCK = ".terraform.lock.hcl"
_MADE = ".terraform"
_STAMP = f"{_MADE}/gpucourse-init"
_PINS = f"{_MADE}/gpucourse-pins.hcl"
_CHECKSUMS = re.compile(r'^  hashes = \[\n(?:    "[^"\n]*",\n)*  \]\n', re.MULTILINE)
_STEERING = ("TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR")  # where Terraform looks for providers, and where it puts them


def is_initialised(folder: Path, version: tuple[int, int, int]) -> bool:
    """Whether `init` was done for these very files by this version, and every provider is still what it was then."""
    try:
        return bool(json.loads((folder / _STAMP).read_bytes()) == _stamp(folder, version))
    except (OSError, ValueError):  # never done, or something of it is gone
        return False


def pin(folder: Path) -> None:
    """Put the checksums back that were put aside, so that the `init` that follows compares with them. A lock file that somebody
    else wrote since then stays as it is."""
    with contextlib.suppress(FileNotFoundError):  # never put aside: they are in force
        pins = (folder / _PINS).read_text(encoding="utf-8")
        if (folder / _LOCK).read_text(encoding="utf-8") == _CHECKSUMS.sub("", pins):
            write_text(folder / _LOCK, pins)


def mark_initialised(folder: Path, version: tuple[int, int, int]) -> None:
    """Remember that `init` was done for these files, and put the checksums aside that it has just compared."""
    lock = folder / _LOCK
    if lock.is_file():
        pins = lock.read_text(encoding="utf-8")
        write_text(folder / _PINS, pins)
        write_text(lock, _CHECKSUMS.sub("", pins))
    write_text(folder / _STAMP, json.dumps(_stamp(folder, version)))


@dataclass(frozen=True)
class Kept:
    """What `init` made for one set of files, kept for the next stack that has the same; only links, no provider.

    `place` is the folder of all that is kept, `mirror` the one that the providers come from if any. Where it cannot be read or
    written, only speed is lost.
    """

    place: Path
    version: tuple[int, int, int]
    environ: Mapping[str, str]
    mirror: Path | None

    def take(self, folder: Path) -> bool:
        """Do as if `init` had been run in the folder; whether that was possible."""
        kept = self.place / self.key(folder)
        if not kept.is_dir():
            return False
        with contextlib.suppress(OSError):
            shutil.rmtree(folder / _MADE, ignore_errors=True)
            shutil.copytree(kept / _MADE, folder / _MADE, symlinks=True)
            shutil.copyfile(kept / _LOCK, folder / _LOCK)
            if is_initialised(folder, self.version):
                return True
        pin(folder)
        shutil.rmtree(kept, ignore_errors=True)
        return False

    def keep(self, folder: Path, key: str) -> None:
        """Keep what `init` made there, if it only linked to its providers. `key` is what `key` said before `init`."""
        if any(not provider.is_symlink() for provider in _providers(folder)) or (self.place / key).exists():
            return
        with contextlib.suppress(OSError):
            self.place.mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=".", dir=self.place))
            try:
                shutil.copytree(folder / _MADE, aside / _MADE, symlinks=True)
                shutil.copyfile(folder / _LOCK, aside / _LOCK)
                aside.rename(self.place / key)
            finally:
                shutil.rmtree(aside, ignore_errors=True)

    def key(self, folder: Path) -> str:
        """Names the files of the folder, and all that decides what `init` makes of them."""
        steering = [self.environ.get(name, "") for name in _STEERING]
        return hashlib.sha256(
            json.dumps([_fingerprint(folder, self.version), str(self.mirror), *steering]).encode()
        ).hexdigest()


def _stamp(folder: Path, version: tuple[int, int, int]) -> dict[str, object]:
    """The files of the stack, and each file of its providers with size and date."""
    found = {}
    for provider in _providers(folder):
        for parent, _, names in os.walk(provider):
            for name in names:
                file = Path(parent, name)
                status = file.stat()
                found[file.relative_to(folder).as_posix()] = [status.st_size, status.st_mtime_ns]
        found.setdefault(provider.relative_to(folder).as_posix(), [])
    return {"files": _fingerprint(folder, version), "providers": found}


def _providers(folder: Path) -> Iterator[Path]:
    """host/namespace/name/version/platform: the last one may be a link into a mirror or a cache."""
    return (folder / _MADE / "providers").glob("*/*/*/*/*")


def _fingerprint(folder: Path, version: tuple[int, int, int]) -> str:
    digest = hashlib.sha256(repr(version).encode())
    modules = (folder / "modules").rglob("*.tf")
    for file in [*sorted(folder.glob("*.tf")), *sorted(folder.glob("*.tf.json")), *sorted(modules), folder / _LOCK]:
        if file.is_file():
            digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()
