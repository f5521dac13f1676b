"""Names and values that several commands change: no command overwrites what another has just stored."""

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
    """Yield the content of `path`, which the block may change; it is stored at the end of the block if it changed. An error in
    the block leaves the file unchanged. Raises the errors of `read_mapping` and `hold_lock`."""
    with hold_lock(paths.lock(path.stem), f"changing {path.name}"):
        former_bytes = read_mapping(path)
        values = dict(former_bytes)
        yield values
        if values != former_bytes:
            write_record(path, {"version": MAPPING_VERSION, **values})
