"""`equals`: the value is this number, word, true or false; numbers within the tolerance."""

from __future__ import annotations

from gpucourse.model.check_kind import CheckKind
from gpucourse.model.fields import is_number


def _holds(observed: object, wanted: object, tolerance: float) -> bool | None:
    if is_number(observed) and is_number(wanted):
        return abs(observed - wanted) <= tolerance
    if type(observed) is type(wanted) and isinstance(observed, (str, bool)):
        return observed == wanted
    return None


KIND = CheckKind(
    name="equals",
    words="",
    description="the value is this, or differs by at most the tolerance",
    holds=_holds,
    tolerance=True,
)
