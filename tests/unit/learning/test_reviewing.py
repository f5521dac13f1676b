"""What an instructor sees of a bundle beside its points: numbers that nobody printed, edits as a diff, a stable document."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from gpucourse.grading.repeats import compare_figures
from gpucourse.learning.review.commands import type_command
from gpucourse.learning.review.rerun import compare_checks, list_settings, list_start_options, make_environment, make_home
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import RunRecord
from gpucourse.runs.finish import seal
from gpucourse.runs.mutations import keep_edited_files
from gpucourse.runs.results import verdict_on
from gpucourse.storage import write_text
from gpucourse.workspace import runs
from tests.documents import SCHEMA
from tests.learning import FOLDER, MANIFEST, METRICS, SCRIPT, Learning
from tests.unit.grading.test_invented_numbers import invent

CHECKS = "    checks:\n      - {id: wet, title: It is wet, value: metrics.wet, equals: true, hint: Was it a river?}\n"
CHECKS += "      - {id: flows"
LOGS = '    logs: [{line: "litres {litres}, busy {busy_percent} %", rows: metrics.springs}]\n'
PRINTED = "litres 1.5, busy 78 %\nlitres 2.5, busy 96 %\n"


@pytest.fixture
def printing(learning: Learning) -> Learning:
    """A course whose first exercise prints its springs."""
    assert MANIFEST.count(CHECKS) == 1
    learning.put(f"modules/{FOLDER}/module.yaml", MANIFEST.replace(CHECKS, LOGS + CHECKS))
    return learning


def record_with_log(learning: Learning, log: str, **other: Any) -> RunRecord:
    """A good run whose rank printed this."""
    record = learning.record(**other)
    learning.folder(record).joinpath("logs/node0-rank0.log").write_text(log)
    seal(runs.files_of(learning.open_context().paths, record), "local")
    return record


def read_points(learning: Learning, *words: str) -> dict[str, float]:
    document = learning.types("grade", "--json", *words).document
    part = (document if not words else document["bundles"][0]["grade"])["parts"][0]
    return {row["id"]: row["earned"] for row in part["rows"]}


def hand_in(learning: Learning, name: str = "work.zip", by: str = "Noah") -> Path:
    path = learning.root / name
    learning.types("grade", "--bundle", str(path), "--by", by)
    return path


def test_what_ranks_printed_counts(printing: Learning) -> None:
    record_with_log(printing, PRINTED)
    printing.types("check", "1.1")
    assert read_points(printing) == {"completed": 5, "deliverables": 5, "understanding": 0}
    printing.types("answer", "1.1", "--set", "busy=80")


def test_numbers_that_nobody_printed_count_for_nothing(printing: Learning) -> None:
    record_with_log(printing, PRINTED.replace("2.5", "3.5"))
    why = "metrics.springs, row 2, is not what was printed: litres is 2.5, and the log says 3.5"
    said = printing.types("check", "1.1", code=5)
    assert why in " ".join(said.out.split())
    refused = printing.types("answer", "1.1", "--set", "busy=80", code=None)
    assert "are not what its ranks printed" in " ".join((refused.out + refused.err).split())
    assert read_points(printing) == {"completed": 0, "deliverables": 0, "understanding": 0}
    path = hand_in(printing)
    printing.workspace.rename(printing.root / "gone")
    said = printing.types("grade", "--open", str(path))
    assert f"1.1: not what the ranks printed: {why}" in " ".join(said.out.split())
    assert read_points(printing, "--open", str(path)) == {"completed": 0, "deliverables": 0, "understanding": 0}


def test_a_run_without_a_log_counts_for_nothing(printing: Learning) -> None:
    record_with_log(printing, "")
    assert read_points(printing)["completed"] == 0


def record_edit(learning: Learning, edited: str) -> RunRecord:
    """A good run of an edited script, as `run` keeps it."""
    mine = learning.workspace / f"exercises/{FOLDER}/source.py"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text(edited)
    record = learning.record()
    context = learning.open_context()
    keep_edited_files(context, record)
    runs.save(context.paths, record)
    seal(runs.files_of(context.paths, record), "local")
    mine.write_text(SCRIPT)  # put back after the run: what ran is what counts
    return record


def test_edits_are_shown_as_a_diff_and_counted(learning: Learning) -> None:
    record_edit(learning, SCRIPT.replace('"wet": True', '"wet": "\x1b[31myes"').replace("print(", "# <b>printed</b>\nprint("))
    path = hand_in(learning)
    shown = learning.types("grade", "--open", str(path)).out
    assert f"1.1 (2 lines); see: gpucourse grade --open {path} --exercise 1.1" in " ".join(shown.split())
    diff = learning.types("grade", "--open", str(path), "--exercise", "1.1").out
    assert "source.py: 2 added, 1 removed" in diff
    assert "+# <b>printed</b>" in diff
    assert "\x1b" not in diff
    document = learning.types("grade", "--open", str(path), "--exercise", "1.1", "--json").document["bundles"][0]
    assert document["edited_lines"] == 2
    assert document["edits"] == [{"exercise": "1.1", "lines": 2, "files": ["source.py"]}]
    assert "+# <b>printed</b>" in document["diffs"][0]["lines"]
    table = list(csv.DictReader(io.StringIO(learning.types("grade", "--open", str(path), "--csv").out)))
    assert {row["row"]: row["edited_lines"] for row in table}["total"] == "2"
    assert "lines edited" in " ".join(learning.types("grade", "--open", str(path), str(hand_in(learning, "b.zip"))).out.split())


def test_an_edit_is_bounded_and_one_that_is_missing_is_named(learning: Learning) -> None:
    record = record_edit(learning, SCRIPT + "# x\n" * 1000)
    shown = learning.types("grade", "--open", str(hand_in(learning)), "--exercise", "1.1").out
    assert "more lines" in shown
    assert shown.count("+# x") < 500
    (learning.folder(record) / "edited/source.py").unlink()
    seal(runs.files_of(learning.open_context().paths, record), "local")
    shown = learning.types("grade", "--open", str(hand_in(learning, "second.zip")), "--exercise", "1.1").out
    assert "edited, and no copy of it is with the run" in shown


def test_an_untouched_script_has_no_diff(learning: Learning) -> None:
    learning.record()
    path = hand_in(learning)
    assert "No file of the run that counts was edited" in learning.types("grade", "--open", str(path), "--exercise", "1.1").out
    assert "there is no exercise '1.9'" in learning.types("grade", "--open", str(path), "--exercise", "1.9", code=2).err
    assert "--exercise is about one bundle" in learning.types("grade", "--exercise", "1.1", code=2).err


def test_the_same_bundles_make_the_same_bytes(learning: Learning) -> None:
    learning.record()
    names = [str(hand_in(learning, "a.zip", "Ada")), str(hand_in(learning, "b.zip", "Bob"))]
    learning.workspace.rename(learning.root / "gone")
    for words in ([], ["--csv"], ["--json"]):
        first = learning.types("grade", "--open", *names, *words).out
        assert learning.types("grade", "--open", *names, *words).out == first


def test_the_document_of_points_is_small(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUCOURSE_COURSE")
    said = learning.types("grade", "--json")
    assert len(said.out) < 20_000
    assert {"pieces", "share", "signs"}.isdisjoint(json.dumps(said.document).split('"'))
    assert said.document["points"] == 100
    assert said.document["exercises"] == sum(len(module.exercises) for module in load(find_course({})).modules)


def test_a_course_of_ones_own_has_its_points_in_the_new_bundle(learning: Learning) -> None:
    rubric = learning.course / "modules/rubric.yaml"
    rubric.write_text(rubric.read_text().replace("title: Rivers\n", "title: Rivers\n    counts: own\n"))
    learning.record()
    said = learning.types("grade", "--bundle", str(learning.root / "work.zip"))
    assert "0 of 0" not in said.out
    assert "10 of 25 scored separately" in " ".join(said.out.split())
    assert "10 of 25" in learning.types("grade", "--open", str(learning.root / "work.zip")).out


def test_rerunning_asks_first_and_refuses_what_cannot_be_combined(learning: Learning) -> None:
    learning.record(metrics=METRICS | {"cuda": "12.8"}, mode="aws")
    path = str(hand_in(learning))
    said = learning.types("grade", "--rerun", path, code=2)
    assert "runs the learner's code on this computer" in " ".join(said.err.split())
    assert f"gpucourse grade --rerun {path} --yes" in said.err
    assert "cannot be combined" in learning.types("grade", "--rerun", path, "--csv", code=2).err
    assert "belong to --rerun" in learning.types("grade", "--yes", code=2).err
    said = learning.types("grade", "--rerun", path, "--yes", code=3)
    assert "it was measured on a GPU; simulated nodes have none" in " ".join(said.out.split())
    assert (
        "there is no run or part of '1.2'" in learning.types("grade", "--rerun", path, "--yes", "--exercise", "1.2", code=2).err
    )


def test_a_check_that_fails_in_the_new_run_alone_is_named(printing: Learning) -> None:
    record, again = (record_with_log(printing, log) for log in (PRINTED, PRINTED.replace("2.5", "3.5")))
    context = printing.open_context()
    exercise = context.catalog.exercise("1.1")[1]
    same, other = ([asdict(check) for check in verdict_on(context, exercise, run).checks] for run in (record, again))
    assert compare_checks(context, exercise, record, same) == ""
    assert compare_checks(context, exercise, record, other) == "check logs-agree: not in the bundle, failed again"
    assert compare_checks(context, exercise, again, same) == "check logs-agree: failed in the bundle, passed again"


def test_scripts_of_others_see_no_credentials(learning: Learning, tmp_path: Path) -> None:
    environ = {
        "AWS_SECRET_ACCESS_KEY": "x",
        "GITHUB_TOKEN": "x",
        "GPUCOURSE_COURSE_TOKEN": "x",
        "SSH_AUTH_SOCK": "x",
        "XDG_RUNTIME_DIR": "x",
        "XDG_CONFIG_HOME": "x",
        "PATH": "/bin",
        "HOME": str(tmp_path / "instructor"),
        "GPUCOURSE_COURSE": "/course",
        "GPUCOURSE_WORKSPACE": "/mine",
    }
    for secret in (".ssh/id_ed25519", ".aws/credentials", ".config/gpucourse/trusted.json", ".cache/gpucourse/provider"):
        write_text(tmp_path / "instructor" / secret, "x")
    home = make_home({"HOME": environ["HOME"]}, tmp_path / "home")
    kept = make_environment(environ, learning.open_context().paths, home)
    kept.pop("PYTHONUSERBASE", None)
    workspace = str(learning.workspace)
    assert kept == {"PATH": "/bin", "GPUCOURSE_COURSE": "/course", "HOME": str(home), "GPUCOURSE_WORKSPACE": workspace}
    there = {path.relative_to(home).as_posix() for path in home.rglob("*") if not path.is_dir()}
    assert there == {".config/gpucourse/trusted.json"}
    assert (home / ".cache/gpucourse/provider").is_file(), "what was downloaded is not downloaded again"


EXERCISE: dict[str, Any] = {
    "id": "7.1", "title": "t", "goal": "g", "minutes": 1, "script": "s.py", "launch": {"kind": "python"}, "tasks": ["t"],
    "hints": ["h"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ({"wet": True, "litres": [1.0]}, {"wet": True, "litres": [1.004]}, ["agrees", "agrees"]),
        ({"wet": True, "litres": [1.0]}, {"wet": True, "litres": [1.02]}, ["agrees", "differs"]),
        ({"wet": True, "litres": [1.0]}, {"wet": True, "litres": [1.0, 1.0]}, ["agrees", "differs"]),
        ({"wet": True}, {"wet": True}, ["agrees", "agrees"]),
        ({"wet": True, "litres": ["nan"]}, {"wet": False, "litres": ["nan"]}, ["differs", "agrees"]),
        ({"wet": True, "litres": [1]}, {}, ["differs", "differs"]),
    ],
)
def test_values_agree_by_the_tolerance_of_the_manifest(before: Any, after: Any, verdict: list[str]) -> None:
    check = {"id": "wet", "title": "t", "value": "metrics.wet", "equals": True, "hint": "h"}
    again = {"value": "metrics.litres", "tolerance_percent": 1.0}
    exercise = Exercise.model_validate(EXERCISE | {"checks": [check], "same_again": [again]})
    figures = compare_figures(exercise, {"metrics": before}, {"metrics": after})
    assert [figure.verdict for figure in figures] == verdict


def test_a_time_is_noted_and_never_counted() -> None:
    question = {
        "id": "q",
        "text": "t",
        "kind": "numeric",
        "value": "metrics.median_ms",
        "tolerance_percent": 5.0,
        "explanation": "e",
    }
    exercise = Exercise.model_validate(EXERCISE | {"questions": [question]})
    [near] = compare_figures(exercise, {"metrics": {"median_ms": 1.0}}, {"metrics": {"median_ms": 7.0}})
    [far] = compare_figures(exercise, {"metrics": {"median_ms": 1.0}}, {"metrics": {"median_ms": 70.0}})
    assert (near.verdict, near.note, far.verdict, far.note) == ("time", "", "time", "differs by a factor of 70")


FAKES = ("3.1", "3.2", "4.2", "5.1", "6.1")


def test_runs_that_only_wrote_the_numbers_have_no_points(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    learning.course = SCHEMA.parent.parent  # the course itself
    monkeypatch.setenv("GPUCOURSE_COURSE", str(learning.course))
    catalog = learning.open_context().catalog
    for number in FAKES:
        module, exercise = catalog.exercise(number)
        metrics = invent(exercise)
        record = learning.record(
            number,
            metrics,
            module=module.id,
            launcher=exercise.launch.kind,
            nodes=["node0", "node1"],
            world_size=2,
            parameters={},
        )
        assert record.verdict == "failed", number
        said = learning.types("check", number, code=5)
        assert "The metrics are what the ranks printed" in " ".join(said.out.split()), number
    path = hand_in(learning)
    opened = learning.types("grade", "--open", str(path), "--json").document["bundles"][0]["grade"]
    assert opened["earned"] == opened["own"] == 0
    missing = " ".join(row["missing"] for part in opened["parts"] for row in part["rows"])
    assert all(f"{number}: not what the ranks printed" in missing for number in FAKES)


def test_names_in_a_bundle_lead_nowhere(learning: Learning) -> None:
    (learning.root / "secret.txt").write_text("hidden words\n")
    evil = ["../../../../secret.txt", str(learning.root / "secret.txt"), "/dev/zero", "helper.py"]
    parameters = {"depth": "1; touch /tmp/x", "--sweep": "depth=1,2", "nodes": [1]}
    learning.record(edited=evil, parameters=parameters)
    path = hand_in(learning)
    shown = learning.types("grade", "--open", str(path), "--exercise", "1.1").out
    assert "hidden words" not in shown
    assert "helper.py" in shown
    assert "edited, and no copy of it is with the run" in shown
    said = learning.types("grade", "--rerun", str(path), "--yes", code=3)
    assert "helper.py was edited, and is not in the bundle" in " ".join(said.out.split())
    exercise = learning.context.catalog.exercise("1.1")[1]
    record = learning.record(edited=evil, parameters=parameters)
    assert list_settings(exercise, record) == ["--set", "depth=1; touch /tmp/x"], "one word, which the manifest refuses"


def test_a_run_is_done_again_with_the_variables_that_were_typed(learning: Learning) -> None:
    record = learning.record(environment={"A": "b c"}, torchrun="--max-restarts=1")
    assert list_start_options(record) == ["--env", "A=b c", "--torchrun", "--max-restarts=1"]
    code, document = type_command({}, "run", "1.1", "--env", "A=\0")
    assert (code, document["error"]["what"]) == (2, "it cannot be typed: embedded null byte")


def test_a_run_with_values_that_nobody_else_has_is_not_done_again(learning: Learning) -> None:
    learning.record(handed_on=["TOKEN"])
    said = learning.types("grade", "--rerun", str(hand_in(learning)), "--yes", code=3)
    assert "whose values are not stored: TOKEN" in " ".join(said.out.split())
