"""JSON from outside: every error is of one kind, with one plain sentence."""

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


def test_parse_json_reads_a_document() -> None:
    value = {"a": [1, -2.5, "ü\n", None, True, {"b": 10**300}], "": "\U0001f600"}
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)


BAD = {
    "empty": b"",
    "more than one document": b'{"a": 1} trailing',
    "not UTF-8": b"\xff\xfe{}",
    "a lone surrogate": b'"\\ud800"',
    "not a number": b"NaN",
    "infinity": b"[-Infinity]",
    "larger than a float": b"1e400",
    "5,000 digits": b"9" * 5000,
    "nested 3,000 deep": b"[" * 3000 + b"]" * 3000,
    "too deep": b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    "too many items": b"[" + b"[]," * MAX_ITEMS + b"1]",
    "too long": b'"' + b"x" * (4 << 20) + b'"',
    "a surrogate in text": "[\ud800]",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_parse_json_raises_one_error_with_one_sentence(data: bytes | str) -> None:
    with pytest.raises(OutsideError) as caught:
        parse_json(data)
    assert 0 < len(str(caught.value)) <= 300
    assert str(caught.value).isprintable()


def test_parse_json_keeps_to_the_limits_of_the_caller() -> None:
    assert parse_json(b"[1,2,3]", max_bytes=7, max_items=3) == [1, 2, 3]
    for limit in ({"max_bytes": 6}, {"max_items": 2}):
        with pytest.raises(OutsideError):
            parse_json(b"[1,2,3]", **limit)


def test_parse_typed_converts_members() -> None:
    document = parse_typed(b'{"code": 1, "reason": "x", "seconds": 2, "other": [1]}', Exit)
    assert document == Exit(code=1, reason="x", seconds=2.0)


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{}",
        b'{"code": "1", "reason": "x"}',
        b'{"code": true, "reason": "x"}',
        b'{"code": 1, "reason": "x", "ranks": ["1"]}',
    ],
)
def test_parse_typed_refuses_members_of_another_type(data: bytes) -> None:
    with pytest.raises(OutsideError, match="does not have the required form"):
        parse_typed(data, Exit)


def test_parse_typed_escapes_the_words_of_an_error() -> None:
    with pytest.raises(OutsideError) as caught:
        parse_typed(b'{"\\u001b[31m": {"code": "x"}}', dict[str, Exit])
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("wide", ["\U0001f600", "\\ud83d\\ude00"])
def test_parse_json_refuses_a_long_document_of_wide_characters(wide: str) -> None:
    """Parse characters of four bytes each in memory, so that 32 MiB would become 128 MiB."""
    text = '"' + "a" * (17 << 20) + wide + '"'
    with pytest.raises(OutsideError, match="the limit is"):
        parse_json(text, max_bytes=32 << 20)
    assert parse_json(text.replace(wide, ""), max_bytes=32 << 20) == "a" * (17 << 20)


THREADS = """
import dataclasses, sys, threading
from gpucourse.outside.documents import convert
sys.setswitchinterval(1e-6)
for number in range(20):
    parts = {f"part{place}": dataclasses.make_dataclass(f"Part{place}", [("x", int)]) for place in range(10)}
    kind = dataclasses.make_dataclass(f"Whole{number}", parts.items())
    value = {name: {"x": 1} for name in parts}
    start = threading.Barrier(8)
    threads = [threading.Thread(target=lambda: (start.wait(), convert(value, kind))) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def test_convert_works_in_several_threads_with_a_new_class() -> None:
    subprocess.run([sys.executable, "-c", THREADS], check=True, timeout=120)
