"""`at_least`: the value is this number or larger."""

from __future__ import annotations

import operator

from gpucourse.model.check_kind import number_kind

KIND = number_kind("at_least", "at least", "the value is this number or larger", operator.ge)
