"""A kind of check in one file, as somebody would add one to src/gpucourse/model/check_kinds."""

from __future__ import annotations

from gpucourse.model.check_kind import number_kind

KIND = number_kind(
    "multiple_of", "a multiple of", "the value is a multiple of this number", lambda value, base: value % base == 0
)
