"""The tags that mark a resource as ours, with any name of a user."""

from __future__ import annotations

import pytest

from gpucourse.aws import tags


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("CORP\\ada", "CORP_ada"),
        ("Zoë Šimůnková", "Zoë Šimůnková"),
        ("a\N{SLIGHTLY SMILING FACE}b", "a_b"),
        ("ada@example.org", "ada@example.org"),
        ("x" * 300, "x" * 128),
    ],
)
def test_make_value_accepts_whatever_a_user_is_called(text: str, value: str) -> None:
    assert tags.make_value(text) == value
