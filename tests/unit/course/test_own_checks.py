"""Checks that a script of the learner's own brings: read like those of a manifest, kept with the run, and judged again."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.course.own_checks import read_own_checks
from gpucourse.errors import ManifestError, UsageError
from tests.learning import Learning

FILE = """\
checks:
  - {id: fast, title: It is fast, value: metrics.steps_per_s, at_least: 100, unit: steps/s, hint: Take a larger batch.}
  - {id: whole, title: All ranks took part, value: metrics.ranks, equals: plan.world_size, hint: Look at the logs.}
"""
OWN = "/home/me/train.py"


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("checks: []\n", ["checks: is empty, line 1"]),
        ("", ["is empty"]),
        ("check: []\n", ["check: is not a key here (did you mean checks?), line 1"]),
        (FILE.replace("at_least", "atleast"), ["checks.0: needs exactly one of", "line 2"]),
        (FILE.replace("hint: Take", "hnt: Take"), ["checks.0.hnt: is not a key here (did you mean hint?), line 2"]),
        (FILE.replace("value: metrics.ranks", "value: ranks"), ["checks.1.value", "line 3"]),
        (FILE.replace("id: whole", "id: fast"), ["the id fast is there twice"]),
        ("checks: [", ["is not YAML", "line"]),
    ],
)
def test_read_own_checks_of_a_bad_file_names_place_key_and_suggestion(tmp_path: Path, text: str, complaints: list[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError) as caught:
        read_own_checks(path)
    for complaint in complaints:
        assert complaint in caught.value.what
    assert str(path) in caught.value.what


def test_read_own_checks_of_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_own_checks(tmp_path / "none.yaml")


def record_own(learning: Learning, script: str = OWN, **metrics: object) -> str:
    path = learning.root / "checks.yaml"
    path.write_text(FILE)
    checks = [dict(check) for check in read_own_checks(path)]
    record = learning.record(
        metrics={"ranks": 2, **metrics}, own_script=script, checks=checks, world_size=2, launcher="torchrun"
    )
    return record.id


def test_check_of_an_own_script_uses_its_checks_and_counts_for_no_exercise(learning: Learning) -> None:
    record_own(learning, steps_per_s=140.0)
    checked = learning.types("check", "train.py")
    assert "passed" in checked.out
    assert "2 passed" in checked.out
    slow = record_own(learning, steps_per_s=30.0)
    listed = learning.types("runs").out
    assert "failed" in next(line for line in listed.splitlines() if slow in line)
    failed = learning.types("check", "train.py", code=5).out
    assert "It is fast: 30 steps/s; expected at least 100 steps/s [fast]" in failed
    assert "Take a larger batch." in failed
    document = learning.types("check", "train.py", "--run", slow, "--json", code=5).document
    assert (document["verdict"]["exercise"], document["verdict"]["verdict"]) == ("train.py", "failed")
    assert "It is fast" in learning.types("show", "train.py", "--run", slow).out
    assert not (learning.workspace / "deliverables").exists()
    assert "0 of 2 exercises passed" in learning.types("list").out
    assert set(learning.read_points().values()) == {0}


def test_check_of_an_own_script_with_changed_numbers_fails(learning: Learning) -> None:
    run = record_own(learning, steps_per_s=30.0)
    path = learning.workspace / "runs/scripts/train.py" / run / "metrics.json"
    path.write_text(path.read_text().replace("30.0", "300.0"))
    failed = " ".join(learning.types("check", "train.py", code=5).out.split())
    assert "changed: metrics.json" in failed
    assert "run it again: gpucourse run --script train.py" in failed


def test_check_of_an_own_script_without_checks_is_refused(learning: Learning) -> None:
    learning.record(own_script=OWN)
    said = learning.types("check", "train.py", code=3).err
    assert "no run of train.py has succeeded with checks of its own" in said
    assert "gpucourse run --script train.py --checks FILE" in said
