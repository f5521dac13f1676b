"""A run's record is evidence only if it is unchanged: files that were added later earn no points, and cost none."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, StorageError
from gpucourse.labs.collect_before_destroy import collect_runs
from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.record import NodeExit, RunRecord
from gpucourse.remote.fleet import Fleet
from gpucourse.runs import finish
from gpucourse.workspace import runs, seals
from gpucourse.workspace.files import read_json, write_record
from gpucourse.workspace.paths import RunPaths
from tests.learning import METRICS, Learning


def change_metrics(learning: Learning, record: RunRecord) -> Path:
    """Change the run's metrics by hand, and return their path."""
    metrics = learning.folder(record) / "metrics.json"
    metrics.write_text(metrics.read_text().replace("1.9", "9.9"))
    return metrics


def cut_off_while_stored(learning: Learning) -> RunPaths:
    """Return a run whose command was ended between the seal and the last rename: its record still says `collecting`."""
    record = learning.record()
    files = runs.files_of(learning.open_context().paths, record)
    seal = read_json(files.hashes)
    files.record.unlink()
    files.record.mkdir()
    with pytest.raises(StorageError):
        seals.save_sealed(files, record, seal)
    files.record.rmdir()
    write_record(files.record, replace(record, state="collecting", collected=False, verdict=None))
    return files


def test_evidence_of_a_run_that_was_cut_off_while_it_was_stored_is_sealed(learning: Learning) -> None:
    files = cut_off_while_stored(learning)
    shutil.rmtree(learning.workspace / "deliverables" / "1.1")
    result = learning.types("runs", "--json").document["runs"]
    assert [(run["state"], run["verdict"]) for run in result] == [("succeeded", "passed")]
    assert seals.find_changed_files(files) == ()
    assert not files.next_record.exists()
    assert (learning.workspace / "deliverables/1.1/metrics.json").exists()


def test_evidence_of_a_run_that_was_cut_off_and_changed_is_not_sealed(learning: Learning) -> None:
    files = cut_off_while_stored(learning)
    files.metrics.write_text(files.metrics.read_text().replace("1.9", "9.9"))
    learning.types("runs")
    assert seals.find_changed_files(files) == ("metrics.json",)
    files = cut_off_while_stored(learning)
    files.next_record.write_bytes(files.next_record.read_bytes().replace(b'"passed"', b'"better"'))
    assert seals.find_changed_files(files) == ("run.json",)
    assert b'"collecting"' in files.record.read_bytes(), "a record that is not as it was sealed is not taken"


def test_read_run_evidence_refuses_metrics_that_were_changed(learning: Learning) -> None:
    record = learning.record()
    learning.types("answer", "1.1", "--set", "speedup=1.9", "--set", "where=b")
    metrics_file = change_metrics(learning, record)
    result = learning.types("answer", "1.1", "--set", "speedup=9.9", code=3)
    assert f"metrics.json of run {record.id} changed after it had ended" in result.err
    assert "gpucourse run 1.1" in result.err
    learning.types("answer", "1.1", "--set", "why=It falls.")
    assert learning.read_points()["understanding"] == 2.5, "the choice; no number"
    assert "nothing is compared with it" in " ".join(learning.types("answer", "1.1").out.split())
    metrics_file.write_text(metrics_file.read_text().replace("9.9", "1.9"))
    assert learning.read_points()["understanding"] == 5


def test_find_answered_run_of_another_run_than_the_one_that_counts(learning: Learning) -> None:
    first = learning.record()
    learning.types("answer", "1.1", "--set", "speedup=1.9")
    learning.record()
    assert learning.read_points()["understanding"] == 2.5
    change_metrics(learning, first)
    assert learning.read_points()["understanding"] == 0


def test_gather_counts_no_metrics_that_were_added_later(learning: Learning) -> None:
    record = learning.record(metrics={"wet": False})
    folder = learning.folder(record)
    hashes = json.loads((folder / "hashes.json").read_text())
    del hashes["sha256"]["metrics.json"]
    (folder / "hashes.json").write_text(json.dumps(hashes))
    (folder / "metrics.json").write_text(json.dumps(METRICS))
    assert "changed: metrics.json" in learning.types("check", "1.1", code=5).out
    assert learning.read_points()["completed"] == 0


@pytest.mark.parametrize("name", ["metrics.json", "run.json"])
def test_answers_of_a_damaged_run_alone_count_nothing(learning: Learning, name: str) -> None:
    record = learning.record()
    learning.types("answer", "1.1", "--set", "speedup=1.9", "--set", "where=b", "--set", "why=It falls.")
    assert learning.read_points()["understanding"] == 5
    (learning.folder(record) / name).write_text('{"schema": 1, "dev')
    assert learning.read_points()["understanding"] == 2.5, "the choice"
    assert "1 answer needs review" in learning.types("grade").out
    assert f"{name} is damaged" in " ".join(learning.types("show", "1.1").out.split())


def test_gather_counts_a_deliverable_of_several_files_if_all_are_there(learning: Learning) -> None:
    record = learning.record()
    folder = learning.folder(record)
    (folder / "logs" / "node1-rank1.log").write_text("found it, too\n")
    context = learning.open_context()
    finish.seal(runs.files_of(context.paths, record), "local")
    finish.deliver(context.paths, context.catalog.exercise("1.1")[1], record)
    assert learning.read_points()["deliverables"] == 5
    (learning.workspace / "deliverables/1.1/logs/node1-rank1.log").unlink()
    assert learning.read_points()["deliverables"] == 2.5


def test_find_counting_run_is_the_older_one_after_the_newer_one_is_gone(learning: Learning) -> None:
    older, newer = learning.record(), learning.record()
    shutil.rmtree(learning.folder(newer))
    learning.types("check", "1.1")
    assert json.loads((learning.workspace / "deliverables/1.1/verdict.json").read_text())["run"] == older.id
    assert learning.read_points() == {"completed": 5, "deliverables": 5, "understanding": 0}


def test_evidence_of_a_run_that_cannot_be_handed_in_is_sealed(learning: Learning) -> None:
    record = learning.record()
    folder = learning.folder(record)
    (folder / "hashes.json").unlink()
    context = learning.open_context()
    record.node_exits = [NodeExit(node="node0", code=0)]
    files = runs.files_of(context.paths, record)
    files.node_outputs("node0").mkdir(parents=True, exist_ok=True)
    shutil.copy(files.metrics, files.node_metrics("node0"))
    shutil.rmtree(learning.workspace / "deliverables")
    (learning.workspace / "deliverables").write_text("no room for a folder here")
    with pytest.raises(StorageError):
        finish.finish(context, Fleet(context.transport, ()), record)
    assert (folder / "hashes.json").is_file()


def test_evidence_that_cannot_be_read_stops_a_destroy_unless_it_is_sealed(learning: Learning) -> None:
    record = learning.record()
    folder = learning.folder(record)
    context = learning.open_context()
    lab = LocalDeployment(
        stack="01-local", uid="u", module="1", template="simulated", phase="ready", created="", updated="", nodes_wanted=1,
    )  # fmt: skip
    (folder / "run.json").write_text('{"id": "')
    assert collect_runs(context, lab, discard=False).given_up == [], "what it wrote is home: its files are sealed"
    (folder / "hashes.json").unlink()
    assert collect_runs(context, lab, discard=True).given_up == []
    with pytest.raises(MissingError, match=r"run\.json is damaged.*may not have been collected yet") as caught:
        collect_runs(context, lab, discard=False)
    assert "gpucourse destroy 1 --discard" in caught.value.hint


def test_evidence_of_a_changed_run_is_left_out_of_the_report(learning: Learning) -> None:
    figure = "{id: device, title: device, value: metrics.device}"
    chapter = f"{{id: flow, title: Flow, text: Litres., exercise: '1.1', by: depth, figures: [{figure}]}}"
    learning.put("modules/report.yaml", f"format: 1\ntitle: Rivers\nchapters: [{chapter}]\n")
    record, run = learning.record(parameters={"depth": 20}), learning.record()
    change_metrics(learning, record)
    result = learning.types("report", "--format", "md")
    assert f"left out: run {record.id}: metrics.json" in result.err
    text = (learning.workspace / "deliverables/final/report.md").read_text()
    assert run.id in text
    assert record.id not in text


def test_evidence_of_a_run_that_ended_unobserved_gets_its_screen_at_the_next_look(learning: Learning) -> None:
    manifest = learning.course / "modules/01-rivers/module.yaml"
    manifest.write_text(
        manifest.read_text().replace("source: logs/*.log}", "source: logs/*.log}, {title: The screen, source: screen.svg}")
    )
    record = learning.record()
    output = " ".join(learning.types("show", "1.1").out.split())
    assert f"to hand in: The screen • a picture of the result, made by: gpucourse logs {record.id} -f" in output
    result = learning.types("logs", record.id, "-f")
    assert "found it" in result.err
    assert "✓ passed" in result.out
    assert (learning.workspace / "deliverables/1.1/screen.svg").is_file()
    assert learning.read_points()["deliverables"] == 5
    assert "✓ passed" not in learning.types("logs", record.id, "-f").out, "the second time these are logs"
