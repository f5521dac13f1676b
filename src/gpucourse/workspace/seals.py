"""The seal of a run: the SHA-256 of every file at the end of the run, so that later changes can be detected."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from gpucourse.errors import MissingError
from gpucourse.outside.names import OutsideError, printable, relative_name
from gpucourse.storage import storing
from gpucourse.workspace.files import read_json, write_record
from gpucourse.workspace.paths import RunPaths

EVIDENCE = ("run.json", "plan.json", "metrics.json")
"""The files of a run that checks and questions read."""

_MAX_LENGTH, _MAX_PARTS = 2300, 201
"""The maximum number of characters and parts of a file's name. The limits for outputs that are collected from a node are
lower."""


def read_seal(files: RunPaths) -> dict[str, str]:
    """Return the digests in the run's seal, by path relative to its folder, or an empty dict if there is no readable seal."""
    try:
        return select_digests(read_json(files.hashes))
    except MissingError:
        return {}


def select_digests(document: object) -> dict[str, str]:
    """Return the digests in a seal's document, or an empty dict if the document is not a seal."""
    digests = document.get("sha256") if isinstance(document, dict) else None
    return {str(name): str(digest) for name, digest in digests.items()} if isinstance(digests, dict) else {}


def find_changed_files(
    files: RunPaths, names: Iterable[str] | None = None, *, seal: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return the files that were changed or removed since the run, and evidence that was added later.

    `names`: check only these files, if the run had them.
    `seal`: the digests in the run's seal, if the caller has just read them.

    The verdict is left out, because it is recomputed from the other files.
    """
    complete(files)
    seal = read_seal(files) if seal is None else seal
    if not seal:
        return (files.hashes.name,)
    sealed_names = list(seal) if names is None else [name for name in names if name in seal]
    sealed_names += [name for name in EVIDENCE if name not in seal and (files.folder / name).exists()]
    if (verdict := files.verdict.name) in sealed_names:
        sealed_names.remove(verdict)
    digests = digests_inside(files.folder, sealed_names)
    return tuple(sorted(printable(name) for name, digest in digests if digest != seal.get(name)))


def save_sealed(files: RunPaths, record: object, document: object, *, changed_names: Iterable[str] = ()) -> None:
    """Store a run's record, and its seal `document` with the new digest of the record.

    `changed_names`: files that the program changed. Their new digests are also added to the seal.

    First the record is stored under a temporary name, then the seal is stored, and then the record is renamed. If this is
    interrupted, `complete` renames the record later, so that no record of an ended run lacks a seal.
    """
    if not isinstance(document, dict) or not isinstance(document.get("sha256"), dict):  # damaged: it is kept as evidence
        write_record(files.record, record)
        return
    write_record(files.next_record, record)
    document["sha256"].update({name: digest for name in changed_names if (digest := sha256(files.folder / name))})
    document["sha256"][files.record.name] = sha256(files.next_record)
    write_record(files.hashes, document)
    complete(files, document["sha256"])


def complete(files: RunPaths, seal: Mapping[str, str] | None = None) -> bool:
    """Give the record its final name if `save_sealed` was interrupted after sealing it. Return whether the record was renamed.

    If the record does not match the seal, it was changed and is left alone. `seal`: the digests, if the caller has just written
    them.
    """
    if not files.next_record.exists():
        return False
    ((_, digests),) = digests_inside(files.folder, [files.next_record.name])
    if digests is None or digests != (read_seal(files) if seal is None else seal).get(files.record.name):
        return False
    with storing(files.record), suppress(FileNotFoundError):  # another command has just done it
        files.next_record.replace(files.record)
    return True


def seal_again(files: RunPaths, names: Iterable[str]) -> None:
    """Put the digests of these files into the seal. The program itself has just written the files."""
    document = read_json(files.hashes)
    if isinstance(document, dict) and isinstance(document.get("sha256"), dict):
        document["sha256"].update({name: digest for name in names if (digest := sha256(files.folder / name))})
        write_record(files.hashes, document)


def digests_inside(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each name with the digest of the plain file that it names in `folder`.

    The digest is None if there is no such file, or if the name leads out of the folder. A bundle's seal may contain such
    names.
    """
    root = folder.resolve()
    for name in names:
        try:
            path = root / relative_name(name, max_length=_MAX_LENGTH, max_parts=_MAX_PARTS)
        except OutsideError:
            yield name, None
            continue
        yield name, sha256(path) if os.path.realpath(path) == str(path) else None


def sha256(path: Path) -> str | None:
    """Return the digest of a plain file, or None if there is no plain file at `path`."""
    try:
        if not path.is_file():  # opening a pipe would wait for its writer
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
