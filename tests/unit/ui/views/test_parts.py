from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpucourse.learning.copies import Reset
from gpucourse.learning.try_ import TriedPart
from gpucourse.model.manifest import LearnerPart
from gpucourse.model.verdict import PartResult
from gpucourse.ui.tables import View
from gpucourse.ui.views.parts import LINES_SHOWN, list_parts, reset, show_tried
from tests.unit.ui.examples import EXERCISE, text

PART = LearnerPart(id="double", title="Twice", file="my_double.py", write="Write double.")


def show(verdict: Any, *, waited_s: float = 0.1, part: Any = None, **fields: str) -> str:
    result = PartResult(id="double", title="Twice", file="my_double.py", verdict=verdict, **fields)  # type: ignore[arg-type]
    attempt = TriedPart(part=PART.model_copy(update=part), file=Path("my_double.py"), result=result, waited_s=waited_s)
    return text(show_tried(EXERCISE, [attempt], "gpucourse try 3.1"))


@pytest.mark.parametrize(
    ("verdict", "part", "words"),
    [
        ("open", {}, "Write it in my_double.py and save it."),
        ("open", {"judge": False}, "Write it in my_double.py and save it; a run checks it."),
        ("failed", {}, "Change my_double.py and save it."),
        ("passed", {"checks": ("wet",)}, "Right on this computer; a run checks it as well."),
        ("passed", {}, "Handed in."),
    ],
)
def test_show_tried_says_what_to_do_with_the_file_and_names_one_command(verdict: str, part: dict[str, Any], words: str) -> None:
    output = show(verdict, part=part)
    assert words in output
    assert output.count("gpucourse ") == 1
    assert output.endswith("Next: gpucourse try 3.1\n")


def test_show_tried_cuts_what_a_wrong_part_printed() -> None:
    output = show("failed", way="same", says="it doubles nothing", output="x" * 500 + "\n1" * (LINES_SHOWN + 2), waited_s=5.0)
    for words in ("✗ Twice: wrong (same)", "it doubles nothing", "x ...", "... and 3 more lines", "gpucourse watch 3.1"):
        assert words in output, words


def test_show_tried_shows_once_what_is_the_reason_and_the_output() -> None:
    assert show("failed", way="error", says="TypeError: 4 given", output="TypeError: 4 given\n").count("TypeError") == 1


def test_list_parts_shows_the_state_and_the_file_of_each() -> None:
    exercise = EXERCISE.model_copy(update={"yours": (PART,)})
    result = PartResult(id="double", title="Twice", file="my_double.py", verdict="open")
    [part] = list_parts(exercise, [result], {"double": Path("/w/my_double.py")})
    page = text(View(blocks=(part,)))
    for words in ("Your part: Twice", "Write double.", "/w/my_double.py"):
        assert words in page


def test_reset_shows_where_the_learners_files_are_now() -> None:
    assert "nothing was changed" in text(reset(Reset(exercise=EXERCISE, files={})))
    page = text(reset(Reset(exercise=EXERCISE, files={"a.py": Path("/w/kept/a.py"), "b.py": None})))
    assert "/w/kept/a.py" in page
    assert "there was none" in page
