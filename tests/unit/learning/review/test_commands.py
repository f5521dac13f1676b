from __future__ import annotations

from gpucourse.learning.review.commands import type_command


def test_type_command_with_words_that_cannot_be_passed_is_an_error() -> None:
    code, document = type_command({}, "run", "1.1", "--env", "A=\0")
    assert (code, document["error"]["what"]) == (2, "the command cannot be typed: embedded null byte")
