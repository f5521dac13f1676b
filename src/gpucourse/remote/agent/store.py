"""The node's store of uploaded files, one a content: `~/.gpucourse/store/<key>`. Only what is missing travels."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import IO

from gpucourse.remote.agent.job import HOME, Refused, mapping

STORE = os.path.join(HOME, "store")


def missing(keys: list[str]) -> dict[str, object]:
    """Which of these keys are not in the store."""
    os.makedirs(STORE, 0o700, exist_ok=True)
    return {"missing": [key for key in keys if not os.path.exists(_blob(key))]}


def put(stream: IO[bytes]) -> dict[str, object]:
    """Take a tar of blobs, each under its key. A blob has its name only when it is whole: a stream that was cut leaves none
    half. A key that is a hash of the content (`s-...`) is compared with the content."""
    import hashlib
    import tarfile

    os.makedirs(STORE, 0o700, exist_ok=True)
    taken = 0
    aside = os.path.join(STORE, f".taking-{os.getpid()}")
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                source = tar.extractfile(member)
                if not member.isfile() or source is None:
                    raise Refused(f"not a plain file in the push: {member.name}")
                digest = hashlib.sha256()
                with open(aside, "wb") as blob:
                    for data in _pieces(source):
                        digest.update(data)
                        blob.write(data)
                if member.name.startswith("s-") and member.name != "s-" + digest.hexdigest():
                    raise Refused(f"a pushed file arrived damaged ({member.name})", "damaged")
                os.rename(aside, _blob(member.name))
                taken += 1
    except (tarfile.TarError, EOFError) as error:
        raise Refused(f"the push was cut: {error}", "cut") from error
    finally:
        if os.path.exists(aside):
            os.unlink(aside)
    return {"taken": taken}


def lay_out(wanted: object, folder: str) -> None:
    """Make the work folder anew: each file copied from the store under its own name."""
    files = [mapping(file) for file in wanted] if isinstance(wanted, list) else []
    if os.path.lexists(folder):
        shutil.rmtree(folder)
    os.makedirs(folder, 0o700)
    lacking = [str(file["name"]) for file in files if not os.path.exists(_blob(str(file["key"])))]
    if lacking:
        raise Refused(f"{len(lacking)} files are not in the store, first {lacking[0]!r}", "missing")
    for file in files:
        name = str(file["name"])
        parts = name.split("/")
        if not name or "\0" in name or any(part in ("", ".", "..") for part in parts):
            raise Refused(f"not a name for a file in the work folder: {name!r}")
        target = os.path.join(folder, *parts)
        os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
        shutil.copyfile(_blob(str(file["key"])), target)
        os.chmod(target, 0o700 if file.get("executable") else 0o600)


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: source.read(1 << 20), b"")


def _blob(key: str) -> str:
    if not key or not all(char.isalnum() or char == "-" for char in key):
        raise Refused(f"not a key: {key!r}")
    return os.path.join(STORE, key)
