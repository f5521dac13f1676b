"""`run MODULE --all`. The runs themselves are recorded ones."""

from __future__ import annotations

import pytest

from gpucourse.workspace import deployments
from tests.learning import Learning, deploy


@pytest.fixture
def two_labs(running: Learning) -> Learning:
    for name in ("01-local", "01-other"):
        lab = deploy(running)
        lab.stack = name
        deployments.save(running.context.paths, lab)
    return running


def test_run_all_runs_the_module_on_every_lab(two_labs: Learning) -> None:
    document = two_labs.types("run", "1", "--all", "--json").document
    assert [(step["lab"], step["exercise"], step["verdict"]) for step in document["steps"]] == [
        (lab, exercise, "passed") for lab in ("01-local", "01-other") for exercise in ("1.1", "1.2")
    ]
    result = two_labs.types("run", "1", "--all")
    assert "2 of 2, 01-other, 1.2 Mouth: " in result.err
    assert "Side by side: gpucourse compare" in result.out


def test_run_all_goes_on_after_an_exercise_that_fails(two_labs: Learning, lacking: set[str]) -> None:
    lacking.add("1.1")
    result = two_labs.types("run", "1", "--all", code=4)
    assert "2 of 4 did not pass: 1.1 on 01-local, 1.1 on 01-other" in result.err
    assert "torch is not installed on node0" in result.out
