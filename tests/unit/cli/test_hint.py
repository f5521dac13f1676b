from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gpucourse.model.verdict import KeptParts, PartResult, PartVerdict
from gpucourse.workspace.files import write_record
from gpucourse.workspace.paths import WorkspacePaths
from tests.unit.cli.conftest import Answer


def ask(type_line: Callable[..., Answer], *words: str) -> int:
    """Return the number of the hint that a command shows."""
    return int(json.loads(type_line("hint", *words, "--json").out)["hint"])


def test_hint_shows_one_at_a_time_and_every_one_again(type_line: Callable[..., Answer], workspace: Path) -> None:
    assert [ask(type_line, "3.2") for _ in range(3)] == [1, 2, 3]
    assert ask(type_line, "3.1") == 1
    document = json.loads(type_line("hint", "3.2", "--all", "--json").out)
    count = len(document["hints"])
    assert [hint["hint"] for hint in document["hints"]] == [*range(1, count + 1)]
    assert ask(type_line, "3.2") == count, "all are seen: the last one stays"
    assert ask(type_line, "3.2", "--number", "2") == 2
    assert "The next hint: gpucourse hint 3.2 --number 3" in type_line("hint", "3.2", "--number", "2").out
    assert "That was the last hint" in type_line("hint", "3.2").out
    # An earlier version stored a count.
    for stored, number in ((2, 3), (10**15, count), (-5, 1), ("all", 1), ([1, [2], None], 2)):
        (workspace / ".gpucourse/hints.json").write_text(json.dumps({"version": 1, "3.2": stored}))
        assert ask(type_line, "3.2") == number


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["3.2", "--number", "99"], "3.2 has no hint 99; it has "),
        (["5.1", "--part", "kernel"], "there is no part 'kernel'. Did you mean kernels?"),
        (["3.2", "--number", "1", "--all"], "--number cannot be combined with --part or --all"),
    ],
)
def test_hint_with_wrong_arguments_is_refused(type_line: Callable[..., Answer], words: list[str], message: str) -> None:
    answer = type_line("hint", *words)
    assert answer.code == 2
    assert message in answer.err


@pytest.mark.parametrize(
    ("words", "verdicts", "numbers"),
    [
        ([], [], [1, 2, 3]),
        (["--part", "warps"], [], [4, 5, 6, 6]),
        (["--part", "my_warps.cu"], [("warps", "failed", "transpose-banks")], [5, 4, 6]),
        ([], [("warps", "failed", "split-warps"), ("kernels", "failed", "race")], [3, 6, 1, 2]),
        ([], [("kernels", "passed", "")], [4, 5, 6, 1]),
    ],
)
def test_hint_begins_where_the_newest_verdict_ended(
    type_line: Callable[..., Answer],
    workspace: Path,
    words: list[str],
    verdicts: Sequence[tuple[str, PartVerdict, str]],
    numbers: list[int],
) -> None:
    assert type_line("init").code == 0
    results = {name: PartResult(id=name, title="", file="", verdict=word, way=way) for name, word, way in verdicts}
    write_record(WorkspacePaths(workspace).yours("5.1"), KeptParts(newest=results))
    assert [ask(type_line, "5.1", *words) for _ in numbers] == numbers


def test_hint_for_a_part_suggests_try_without_a_lab(type_line: Callable[..., Answer], workspace: Path) -> None:
    assert type_line("init").code == 0
    assert "gpucourse try 1.3" in type_line("hint", "1.3", "--part", "meter").out
    write_record(
        WorkspacePaths(workspace).yours("1.3"),
        KeptParts(newest={"meter": PartResult(id="meter", title="", file="", verdict="passed", way="")}),
    )
    assert "gpucourse try 1.3" not in type_line("hint", "1.3", "--part", "meter").out
