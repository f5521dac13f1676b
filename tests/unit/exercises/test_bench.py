"""The time that a kernel in the interpreter may take."""

from __future__ import annotations

import signal

import pytest

from tests.unit.exercises.scripts import beside_the_script


def spin() -> None:
    """As a kernel in the interpreter does that never ends: Python's own loop."""
    while True:
        pass


def test_limit_time_ends_a_kernel_without_end() -> None:
    with (
        pytest.raises(TimeoutError, match=r"^it did not end within 0\.05 s$"),
        beside_the_script("shared", "bench").limit_time(0.05),
    ):
        spin()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0), "nothing rings afterwards"
