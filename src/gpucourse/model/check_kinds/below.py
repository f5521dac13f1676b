"""`below`: the value is smaller than this number."""

from __future__ import annotations

import operator

from gpucourse.model.check_kind import number_kind

KIND = number_kind("below", "below", "the value is smaller than this number", operator.lt)
