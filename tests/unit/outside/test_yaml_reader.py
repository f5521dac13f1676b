"""YAML from outside as plain data, with the words of YAML 1.2. Complaints about files are tested in tests/unit/course."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from gpucourse.outside.yaml_reader import read_document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("true", True), ("~", None), ("1:30", "1:30"), ("0x10", "0x10"), ("-7", -7), (".5e3", 500.0),
        ("'7'", "7"),
        ("[1, 2.0]", [1, 2.0]), ("2026-01-31", "2026-01-31"),
    ],
)  # fmt: skip
def test_read_document_reads_the_words_of_yaml_1_2(text: str, value: Any) -> None:
    data = read_document(f"key: {text}\n".encode()).data
    assert data == {"key": value}
    assert type(data["key"]) is type(value)


def test_line_of_a_missing_key_is_that_of_the_nearest_one_around_it() -> None:
    document = read_document(b"a:\n  b: 1\n  c:\n    - d: 2\n")
    assert (document.line(("a", "c", 0, "d")), document.line(("a", "c", 0, "e")), document.line(("a", "x"))) == (4, 4, 1)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} {{{', '.join(f'k{n}: *{before}' for n in range(9))}}}\n" for before, name in pairwise("abcdefghi")
)
MERGE = "base: &a {x: 1}\n" + "".join(f"k{n}: &b{n} {{<<: [{', '.join(['*a'] * 500)}]}}\n" for n in range(500))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "has an anchor"),
        (MERGE, "has an anchor"),
        ("[" * 5000, "nested deeper than 16 levels"),
        ("a: " * 3000, "not YAML"),
        ('spot: !!int ""\n', "has a tag"),
        ("owner: !!python/object/apply:os.system [id]\n", "has a tag"),
        ("".join(f"k{n}: 1\n" for n in range(60_000)), "contains more than 25000 keys and values"),
        ("x" * (1 << 21), "larger than"),
        ("target: local\ntarget: local\n", "appears twice"),
        ("a: \x01\n", "not YAML"),
        ("# only this\n", "is empty"),
        ("--- 1\n--- 2\n", "more than one document"),
    ],
    ids=range(12),
)
def test_read_document_refuses_what_no_person_writes(text: str, reason: str) -> None:
    (complaint,) = read_document(text.encode()).complaints
    assert reason in complaint.reason
    assert len(complaint.reason) < 200
