"""Type the commands of docs/slurm-cluster.md on a cluster as universities run them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.system.cli import Learner
from tests.system.exercising import needs_torch
from tests.university import University

pytestmark = [pytest.mark.system, needs_torch, pytest.mark.slow]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "slurm-cluster.md").read_text(encoding="utf-8")
FIRST, RUNS = (
    [line.partition("  #")[0].strip().removeprefix("gpucourse ") for line in block.splitlines()]
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
)
TYPED = [*FIRST, *RUNS]
SMALL = ["--no-predict", "--set", "elements=1000000"]


def test_the_commands_of_the_page_work(university_cluster: University, tmp_path: Path) -> None:
    learner = Learner(tmp_path / "workspace")
    university_cluster.introduce(tmp_path / "home")
    with learner.leaves_nothing():
        *first, destroy = FIRST
        for line in [*first, *RUNS, destroy]:
            words = shlex.split(line.replace("me@cluster", "uni"))
            result = learner.types(*words, *(SMALL if words[0] == "run" else []))
            if words[0] == "doctor":
                assert "setup: [module load pytorch/2.13]" in result.out
            if words[0] == "runs":
                assert result.out.count("✓ passed") == 3
    university_cluster.check_nothing_is_left()
