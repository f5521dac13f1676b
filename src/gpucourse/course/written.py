"""Any YAML file that a person wrote, checked against its model: every complaint at once, with its place and line."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from gpucourse.course.complaints import format_complaints, from_pydantic
from gpucourse.errors import ManifestError
from gpucourse.outside.files import read_named
from gpucourse.outside.names import OutsideError
from gpucourse.outside.yaml_reader import MAX_BYTES, Complaint, Document, read_document

Model = TypeVar("Model", bound=BaseModel)

HINT = "every key with its type and its meaning: docs/manifest.md"


def read_beside(modules: Path, name: str, model: type[Model]) -> Model | None:
    """Read the file of that name beside the modules; None if there is none. Raises ManifestError with every complaint."""
    shown = f"{modules.name}/{name}"
    try:
        raw = read_named(modules / name, MAX_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, OutsideError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ManifestError([f"{shown}: cannot be read: {why}"], hint=HINT) from error
    return read(raw, model, shown, hint=HINT)[0]


def read(raw: bytes, model: type[Model], shown: str, *, hint: str = "") -> tuple[Model, Document]:
    """Read the bytes of a file. `shown` is its name in messages. Raises ManifestError with every complaint."""
    document = read_document(raw)
    complaints = list(document.complaints)
    if not isinstance(document.data, dict):
        if not complaints:
            complaints.append(Complaint((), "is not a mapping of keys and values"))
        raise ManifestError(format_complaints(shown, document, complaints), hint=hint)
    try:
        checked = model.model_validate(document.data)
    except ValidationError as error:
        told_all = format_complaints(shown, document, [*complaints, *from_pydantic(error, model, document.data)])
        raise ManifestError(told_all, hint=hint) from error
    if complaints:
        raise ManifestError(format_complaints(shown, document, complaints), hint=hint)
    return checked, document
