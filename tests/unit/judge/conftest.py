"""A judge file for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

JUDGE = """
from gpucourse.judge import Case, Way

WAYS = {"other-way": Way("another")}

def judge(part):
    answer = part.function("answer")
    part.compare([Case("n = 1", part.call(answer, 1), 2)])
"""


@pytest.fixture
def judge_file(tmp_path: Path) -> Path:
    (tmp_path / "judges").mkdir()
    path = tmp_path / "judges" / "my_part.py"
    path.write_text(JUDGE)
    return path
