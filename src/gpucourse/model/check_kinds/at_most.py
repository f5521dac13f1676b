"""`at_most`: the value is this number or smaller."""

from __future__ import annotations

import operator

from gpucourse.model.check_kind import number_kind

KIND = number_kind("at_most", "at most", "the value is this number or smaller", operator.le)
