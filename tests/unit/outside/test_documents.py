"""JSON from outside: whatever is wrong with it, one kind of error with one plain sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from gpucourse.outside.documents import MAX_DEPTH, MAX_ITEMS, parse_json, parse_typed
from gpucourse.outside.names import OutsideError


@dataclass(frozen=True, kw_only=True)
class Exit:
    code: int
    reason: str
    seconds: float = 0.0
    ranks: list[int] = field(default_factory=list)


def test_an_honest_document_is_read() -> None:
    value = {"a": [1, -2.5, "ü\n", None, True, {"b": 10**300}], "": "\U0001f600"}
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   ",
        b"{",
        b"not json",
        b'{"a": 1} trailing',
        b"\xff\xfe{}",
        b'"\xed\xa0\x80"',
        b'"\\ud800"',
        b'"\\udcff"',
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b"1e400",
        b"-1e999999999999999999",
        b"1" + b"0" * 400,
        b"9" * 5000,
        b"[" * 3000 + b"]" * 3000,
        b'{"a":' * 100_000,
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b"[" + b"[]," * MAX_ITEMS + b"1]",
        b'"' + b"x" * (4 << 20) + b'"',
        "[\ud800]",
        "nul\0",
    ],
    ids=range(23),
)
def test_a_document_that_cannot_be_used_has_one_error(data: bytes | str) -> None:
    with pytest.raises(OutsideError) as caught:
        parse_json(data)
    assert 0 < len(str(caught.value)) <= 300
    assert str(caught.value).isprintable()


def test_the_limits_can_be_chosen() -> None:
    assert parse_json(b"[1,2,3]", max_bytes=7, max_items=3, max_depth=1) == [1, 2, 3]
    for limit in ({"max_bytes": 6}, {"max_items": 2}, {"max_depth": 0}):
        with pytest.raises(OutsideError):
            parse_json(b"[1,2,3]", **limit)


def test_members_have_the_type_that_was_asked_for() -> None:
    document = parse_typed(b'{"code": 1, "reason": "x", "seconds": 2, "other": [1]}', Exit)
    assert document == Exit(code=1, reason="x", seconds=2.0)


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"null",
        b"{}",
        b'{"code": "1", "reason": "x"}',
        b'{"code": true, "reason": "x"}',
        b'{"code": 1.5, "reason": "x"}',
        b'{"code": 1, "reason": 2}',
        b'{"code": 1, "reason": "x", "seconds": "2"}',
        b'{"code": 1, "reason": "x", "ranks": ["1"]}',
        b'{"code": 1, "reason": "x", "ranks": {"1": 1}}',
    ],
)
def test_members_of_another_type_are_refused(data: bytes) -> None:
    with pytest.raises(OutsideError, match="does not hold what it must"):
        parse_typed(data, Exit)


def test_the_words_of_an_error_are_safe_to_show() -> None:
    with pytest.raises(OutsideError) as caught:
        parse_typed(b'{"\\u001b[31m": {"code": "x"}}', dict[str, Exit])
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("wide", ["\U0001f600", "\\ud83d\\ude00"])
def test_a_long_document_of_wide_characters_is_refused(wide: str) -> None:
    """In memory it takes four bytes a character, so that 32 MiB would become 128."""
    text = '"' + "a" * (17 << 20) + wide + '"'
    with pytest.raises(OutsideError, match="the limit is"):
        parse_json(text, max_bytes=32 << 20)
    assert parse_json(text.replace(wide, ""), max_bytes=32 << 20) == "a" * (17 << 20)


THREADS = """
import dataclasses, sys, threading
from gpucourse.outside.documents import convert
sys.setswitchinterval(1e-6)
for number in range(50):
    parts = {f"part{place}": dataclasses.make_dataclass(f"Part{place}", [("x", int)]) for place in range(10)}
    kind = dataclasses.make_dataclass(f"Whole{number}", parts.items())
    value = {name: {"x": 1} for name in parts}
    start = threading.Barrier(8)
    threads = [threading.Thread(target=lambda: (start.wait(), convert(value, kind))) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def test_threads_may_convert_to_a_class_that_none_has_used() -> None:
    subprocess.run([sys.executable, "-c", THREADS], check=True, timeout=120)
