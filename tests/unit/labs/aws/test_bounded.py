from __future__ import annotations

import threading

import pytest

from gpucourse.errors import CloudUnreachable, PermissionRefused
from gpucourse.labs.aws.bounded import at_once


def test_each_look_has_its_answer_or_its_error_and_none_is_waited_for_for_long() -> None:
    for_ever = threading.Event()

    def refused() -> int:
        raise PermissionRefused("no")

    def late() -> int:
        for_ever.wait(30)
        return 3

    found = at_once({"good": lambda: 1, "refused": refused, "late": late}, 0.2)
    assert found["good"] == 1
    assert isinstance(found["refused"], PermissionRefused)
    assert isinstance(found["late"], CloudUnreachable)
    for_ever.set()
    assert at_once({}, 1.0) == {}


def test_a_fault_of_ours_is_raised() -> None:
    def wrong() -> int:
        raise KeyError("ours")

    with pytest.raises(KeyError):
        at_once({"wrong": wrong}, 5.0)
