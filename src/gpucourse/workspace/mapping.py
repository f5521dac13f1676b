"""Change stored names and values under a lock, so that no command overwrites another command's change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpucourse.workspace.files import MAPPING_VERSION, read_mapping, write_record
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths


@contextmanager
def changing(paths: WorkspacePaths, path: Path) -> Iterator[dict[str, Any]]:
    """Yield the content of `path`. If the block changes it and raises no error, store it. Raises the errors of `read_mapping`
    and `hold_lock`."""
    with hold_lock(paths.lock(path.stem), f"changing {path.name}"):
        former_bytes = read_mapping(path)
        values = dict(former_bytes)
        yield values
        if values != former_bytes:
            write_record(path, {"version": MAPPING_VERSION, **values})
