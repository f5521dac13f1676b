"""Bundles that a learner hands in or changes, and the judgements that a reviewer keeps."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from tests.learning import Learning


def hand_in(learning: Learning) -> Path:
    """Return a learner with a good run and answers."""
    learning.record()
    learning.types("answer", "1.1", "--set", "speedup=1.9", "--set", "busy=80", "--set", "where=b", "--set", "why=It falls.")
    return learning.hand_in()


def read_judgements(learning: Learning) -> list[dict[str, Any]]:
    """Return the judgements on other learners' work that the workspace stores."""
    files = learning.workspace.glob(".gpucourse/reviews/*/1.1.json")
    return [judgement for path in files for judgement in json.loads(path.read_text())["judgements"]]


def change_bundle(path: Path, name_ends: str, old: bytes, new: bytes, *, extra: tuple[str, bytes] | None = None) -> Path:
    """Return the bundle with one file changed."""
    target = path.with_name("changed.zip")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as copy:
        for member in source.infolist():
            data = source.read(member)
            copy.writestr(member.filename, data.replace(old, new) if member.filename.endswith(name_ends) else data)
        if extra:
            copy.writestr(*extra)
    return target
