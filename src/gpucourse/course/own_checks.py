"""The checks of a learner's own script (`run --checks`). They are read like a manifest's, and stored with the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gpucourse.course.written import convert_errors, format_complaints, read
from gpucourse.errors import DamagedFile, UsageError
from gpucourse.model.check import Check, OwnChecks
from gpucourse.outside.files import read_named
from gpucourse.outside.names import OutsideError
from gpucourse.outside.yaml_reader import MAX_BYTES, Document

HELP = "write checks as in a manifest: docs/authoring.md, Checks"


def read_own_checks(path: Path) -> tuple[Mapping[str, Any], ...]:
    """Read the checks in a file, each as its keys and values. Raises UsageError if the file cannot be read. Raises
    ManifestError with the place, the key and a suggestion for each error."""
    try:
        raw = read_named(path, MAX_BYTES)
    except (OSError, OutsideError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"--checks {path}: {reason}", hint="name a YAML file on this computer") from error
    _, document = read(raw, OwnChecks, str(path), hint=HELP)
    return tuple(document.data["checks"])


def load_own_checks(documents: Iterable[Mapping[str, Any]], record: Path) -> tuple[Check, ...]:
    """Return the checks that were stored in the `record` of a run. Raises DamagedFile if they are not valid."""
    data = {"checks": [dict(check) for check in documents]}
    try:
        return OwnChecks.model_validate(data).checks
    except ValidationError as error:
        complaints = format_complaints("checks", Document(data=data), convert_errors(error, OwnChecks, data))
        raise DamagedFile(record, complaints[0]) from error
