"""`above`: the value is larger than this number."""

from __future__ import annotations

import operator

from gpucourse.model.check_kind import number_kind

KIND = number_kind("above", "above", "the value is larger than this number", operator.gt)
