"""The limits for following a run: its time and its logs."""

from __future__ import annotations

import time

import pytest

from gpucourse.remote.follow_limits import LogLimits, TimeLimit
from gpucourse.remote.patience import PACE
from tests.unit.remote.agent_link import make_nodes


def test_time_limit_grows_with_the_logs_but_not_beyond_until() -> None:
    assert not TimeLimit(None, None).is_over(0)
    limit = TimeLimit(0.0, None)
    assert limit.is_over(0)
    assert not limit.is_over(1000 * PACE)
    assert TimeLimit(1000.0, time.monotonic()).is_over(1000 * PACE)
    assert ["has not ended there" in str(outcome.error) for outcome in limit.errors(make_nodes(2))] == [True, True]


def test_admit_counts_hosts_and_logs_that_are_here_already() -> None:
    limits = LogLimits("head", 1, None)
    assert limits.most_logs == 5
    limits.keep("a", 0)
    limits.admit("b", 0)
    with pytest.raises(ValueError, match="c is one host more than the 2 that this run can have"):
        limits.admit("c", 0)
    for name, rank in (("head", None), ("head", 0), ("a", None), ("a", 0)):
        limits.admit(name, rank)
    with pytest.raises(ValueError, match="this run can have 5 logs, and this is one more"):
        limits.admit("b", None)
