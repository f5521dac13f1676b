"""A learner's .yaml file, whatever is in it: judged with its own line, or open where a value is still empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.judge.client import Judge

EXERCISES = Path(__file__).parents[4] / "exercises"
FOLDER = EXERCISES / "06-training-at-scale"
SOLUTION = (FOLDER / "solutions" / "my_plan.yaml").read_text(encoding="utf-8")

FATES = {
    "bom-and-crlf": ("\ufeff" + SOLUTION.replace("\n", "\r\n"), "passed", ""),
    "one-empty": (SOLUTION.replace("zero: 1", "zero:"), "open", "still empty: zero"),
    "not-yaml": (SOLUTION.replace("  dp: 4", "  dp: ["), "failed", "my_plan.yaml:"),
    "key-twice": (f"{SOLUTION}zero: 2\n", "failed", "zero appears twice"),
    "alias": (SOLUTION.replace("zero: 1", "zero: *all"), "failed", "has an alias"),
    "word-for-number": (SOLUTION.replace("zero: 1", "zero: one"), "failed", "zero: one is not one of 0, 1, 2, 3"),
    "truth-for-number": (SOLUTION.replace("zero: 1", "zero: true"), "failed", "zero: True is not a whole number"),
    "huge": (SOLUTION.replace("dp: 4", "dp: 99999999999"), "failed", "is not a whole number from 1 to 1,000,000,000"),
    "not-text": ("target: \0", "failed", "is not YAML"),
}


@pytest.mark.parametrize("name", FATES)
def test_judge_of_my_plan_says_the_line(judge: Judge, tmp_path: Path, name: str) -> None:
    text, word, sentence = FATES[name]
    file = tmp_path / "my_plan.yaml"
    file.write_bytes(text.encode())
    places = (FOLDER, EXERCISES / "shared")
    answer = judge.judge(FOLDER / "judges" / "my_plan.py", file, torch=False, limit_s=20.0, path=places)
    assert (answer.word, sentence in answer.says) == (word, True), answer.says
