"""`grade`: points from evidence, a reviewer's judgement, the instructor's table, and bundles that show which files were
changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from pathlib import Path

import pytest

from gpucourse.learning.grade import list_pending
from tests.learning import Learning
from tests.unit.learning.bundles import change_bundle, hand_in, read_judgements


def test_grade_counts_evidence_alone(learning: Learning) -> None:
    assert learning.read_points() == {"completed": 0, "deliverables": 0, "understanding": 0}
    learning.record()
    assert learning.read_points() == {"completed": 5, "deliverables": 5, "understanding": 0}
    learning.record("1.2")
    learning.types("answer", "1.1", "--set", "speedup=1.9", "--set", "busy=9", "--set", "why=It falls.", code=5)
    assert learning.read_points() == {"completed": 10, "deliverables": 5, "understanding": 2.5}, "one of four that need no GPU"
    output = learning.types("grade").out
    assert "17.5 of 25 points and 0 of 10 as a bonus" in output
    assert "2.5 of 10 (+2.5 waiting)" in output
    assert "logic (no GPU)" in output
    assert "1.1: 1 answer open, 1 answer wrong, 1 answer needs review" in output
    assert "9  Clouds: 0 of 10, bonus (not in this course)" in output


def test_grade_of_an_exercise_shows_its_share_of_every_row(learning: Learning) -> None:
    learning.record()
    learning.record("1.2")
    learning.types("answer", "1.1", "--set", "speedup=1.9", "--set", "busy=9", "--set", "why=It falls.", code=5)
    document = learning.types("grade", "1.1", "--json").document
    assert (document["points"], document["earned"], document["waiting"], document["exercises"]) == (20, 12.5, 2.5, 1)
    assert {row["id"]: row["earned"] for row in document["parts"][0]["rows"]} == {
        "completed": 5,
        "deliverables": 5,
        "understanding": 2.5,
    }
    output = learning.types("grade", "1.1").out
    assert output.startswith("Points of 1.1 ")
    assert "open: where" in output
    assert "1.2" not in output
    second_document = learning.types("grade", "1.2", "--json").document
    assert document["points"] + second_document["points"] == 25
    whole = learning.types("grade", "1", "--json").document
    assert whole["parts"][0]["rows"] == learning.types("grade", "--json").document["parts"][0]["rows"]


def test_judgement_by_the_learner_counts_half_until_a_reviewer_judges(learning: Learning) -> None:
    hand_in(learning)
    assert "Your own review of free text counts half until an instructor reviews it: gpucourse answer 1.1 --review" in " ".join(
        learning.types("grade").out.split()
    )
    result = learning.types("grade", "--review", "--judge", "1.1/why=100", "--by", "Ada")
    output = " ".join(result.out.split())
    assert "18.8 of 25 points" in output
    assert "1 self-reviewed" in output
    assert "Your own review" not in output
    assert "1.2 more points (whole course: 0.9) wait for a review by an instructor: gpucourse grade --bundle work.zip" in output
    assert "your own judgement counts half" in result.err
    path = learning.root / "judged.zip"
    learning.types("grade", "--bundle", str(path))
    output = " ".join(learning.types("grade", "--open", str(path)).out.split())
    assert "wait for a review by an instructor: gpucourse grade --bundle work.zip" in output, "not by the learner"
    learning.leave()
    output = " ".join(learning.types("grade", "--open", str(path)).out.split())
    assert "18.8 in the bundle, 18.8 as counted here" in output
    assert f"1.2 more points (whole course: 0.9) wait for a review by you: gpucourse grade --open {path} --review" in output
    learning.types("grade", "--open", str(path), "--judge", "1.1/why=20", "--by", "Bo")
    assert learning.read_points("--open", str(path))["understanding"] == 8, "the reviewer's replaces the learner's"


def test_judgement_of_more_than_everything_counts_nothing(learning: Learning) -> None:
    hand_in(learning)
    words = hashlib.sha256(b"It falls.").hexdigest()
    stored = {"question": "why", "share": 9.0, "by": "Ada", "at": "2026-11-21T10:00:00", "comment": "", "answer_sha256": words}
    learning.workspace.joinpath("deliverables/1.1/review.json").write_text(
        json.dumps({"version": 1, "exercise": "1.1", "judgements": [stored]})
    )
    assert learning.read_points()["understanding"] == 7.5
    assert "1 self-reviewed" in learning.types("grade").out


def test_judgement_of_a_bundle_of_the_same_workspace_is_refused(learning: Learning) -> None:
    path = hand_in(learning)
    result = learning.types("grade", "--open", str(path), "--judge", "1.1/why=100", code=2)
    assert "was made in this workspace: a review of your own work would not count" in result.err
    assert learning.read_points("--open", str(path))["understanding"] == 7.5


def test_judgement_by_a_reviewer_counts_for_the_same_words_only(learning: Learning) -> None:
    path = hand_in(learning)
    learning.types("grade", "--judge", "1.1/why=0")
    second = learning.root / "second.zip"
    learning.types("grade", "--bundle", str(second))
    learning.types("answer", "1.1", "--set", "why=It falls down.")
    third = learning.root / "third.zip"
    learning.types("grade", "--bundle", str(third))
    learning.leave()
    result = learning.types("grade", "--open", str(path), "--judge", "1.1/why=80", "--by", "Ada")
    assert "9.5 of 10" in result.out
    assert [(judgement["by"], judgement["share"], bool(judgement["at"])) for judgement in read_judgements(learning)] == [
        ("Ada", 0.8, True)
    ]
    assert learning.read_points("--open", str(second))["understanding"] == 9.5, (
        "the same words, and the reviewer's replaces the learner's 0%"
    )
    assert learning.read_points("--open", str(third))["understanding"] == 7.5, "other words were not judged"


def test_grade_with_nothing_to_judge_or_hand_in_is_refused(learning: Learning) -> None:
    assert "has no answer yet" in learning.types("grade", "--review", "--judge", "1.1/why=80", code=2).err
    assert "nothing to hand in yet" in learning.types("grade", "--bundle", "x.zip", code=2).err


def test_grade_subject_of_a_bundle_in_another_workspace_has_the_same_points(learning: Learning) -> None:
    path = hand_in(learning)
    learning.leave()
    assert learning.read_points("--open", str(path)) == {"completed": 5, "deliverables": 5, "understanding": 7.5}
    output = learning.types("grade", "--open", str(path)).out
    assert "Points of Noah" in output
    assert "no file has changed since the bundle was made" in output
    assert "17.5 in the bundle, 17.5 as counted here" in output
    learning.types("grade", "--open", str(path), "--review", "--judge", "1.1/why=100", "--by", "Ada")
    assert learning.read_points("--open", str(path))["understanding"] == 10, "judgements are kept in the reviewer's workspace"


def test_grade_subject_of_a_bundle_names_a_file_that_was_changed_in_it(learning: Learning) -> None:
    forged_bundle = change_bundle(hand_in(learning), "metrics.json", b"1.9", b"9.9")
    result = learning.types("grade", "--open", str(forged_bundle), code=5)
    assert "Changed since the bundle was made" in result.out
    assert "Changed after the run, so worth no points" in result.out
    assert "metrics.json" in result.out
    assert learning.read_points("--open", str(forged_bundle), code=5)["completed"] == 0


def test_grade_subject_of_a_bundle_names_a_file_that_was_changed_before(learning: Learning) -> None:
    record = learning.record()
    metrics = learning.folder(record) / "metrics.json"
    metrics.write_text(metrics.read_text().replace("1.9", "9.9"))
    path = learning.root / "work.zip"
    learning.types("grade", "--bundle", str(path))
    result = learning.types("grade", "--open", str(path), code=5)
    assert "no file has changed since the bundle was made" in result.out
    assert "1.1: metrics.json" in result.out
    assert "changed.zip" not in result.err
    assert "files were changed: work.zip" in result.err


@pytest.mark.parametrize("name", ["deliverables/1.1/extra.txt", "deliverables/1.1/review.json", "runs/1.1/x/run.json"])
def test_grade_subject_of_a_bundle_counts_nothing_for_a_file_that_was_added(learning: Learning, name: str) -> None:
    forged_bundle = change_bundle(hand_in(learning), "nothing", b"", b"", extra=(name, b"{}"))
    result = learning.types("grade", "--open", str(forged_bundle), code=5)
    assert f"files were changed: changed.zip: {name}" in result.err
    assert "17.5 in the bundle, 17.5 as counted here" in result.out
    assert learning.read_points("--open", str(forged_bundle), code=5)["understanding"] == 7.5


def test_grade_bundle_of_files_with_odd_dates_and_names_is_made(learning: Learning) -> None:
    path = hand_in(learning)
    os.utime(learning.workspace / "deliverables/1.1/answers.yaml", (0, 0))
    odd = os.fsdecode(os.fsencode(learning.workspace / "deliverables/1.1") + b"/odd\xff.txt")
    Path(odd).write_text("x")
    assert "left out  deliverables/1.1/odd\\udcff.txt" in learning.types("grade", "--bundle", str(path)).out
    assert learning.read_points("--open", str(path))["understanding"] == 7.5


def test_grade_bundle_has_only_runs_whatever_a_sheet_names(learning: Learning) -> None:
    path = hand_in(learning)
    sheet = learning.workspace / "deliverables/1.1/answers.yaml"
    sheet.write_text(re.sub("run: .*", "run: ../../exercises", sheet.read_text()))
    learning.types("grade", "--bundle", str(path))
    with zipfile.ZipFile(path) as bundle:
        assert not [name for name in bundle.namelist() if ".." in name]


def test_grade_subject_of_a_file_that_is_not_a_bundle_is_refused(learning: Learning) -> None:
    path = learning.root / "cut.zip"
    path.write_bytes(hand_in(learning).read_bytes()[:900])
    message = learning.types("grade", "--open", str(path), code=2).err
    assert "is not a complete bundle" in message
    assert "ask the learner for it again: gpucourse grade --bundle FILE" in message


def test_grade_bundle_of_a_course_without_a_rubric_has_the_whole_course(learning: Learning) -> None:
    (learning.course / "modules/rubric.yaml").unlink()
    learning.record()
    path = str(learning.root / "work.zip")
    assert "points  whole course: 2.5 of 20 · 12 %" in learning.types("grade", "--bundle", path).out
    learning.leave()
    output = " ".join(learning.types("grade", "--open", path).out.split())
    assert "whole course 2.5 in the bundle, 2.5 as counted here" in output
    assert "1.1 Source 2.5 of 10 logic (no GPU)" in output
    assert "1 Rivers 2.5 of 20 12 % 1.1: 2.5" in output


def test_list_pending_has_each_free_text_until_it_is_judged(learning: Learning) -> None:
    learning.record()
    learning.types("answer", "1.1", "--set", "why=It falls.", "--set", "where=b")
    (pending,) = list_pending(learning.open_context())
    assert (pending.exercise, pending.id, pending.answer, pending.look_for) == ("1.1", "why", "It falls.", "it falls")
    learning.types("grade", "--judge", "1.1/why=80")
    assert list_pending(learning.open_context()) == []
