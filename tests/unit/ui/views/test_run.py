from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.model.diagnosis import Diagnosis, LogQuote
from gpucourse.model.record import NodeExit, OutputFile, RankExit, RefusedFile, RunRecord
from gpucourse.model.verdict import PartResult
from gpucourse.runs.settle import ListedRun
from gpucourse.ui.render import render
from gpucourse.ui.views import result as results
from gpucourse.ui.views import run
from gpucourse.workspace.paths import RunPaths
from tests.unit.ui.examples import EXERCISE, RESULTS, VERDICT, record, text


def test_runs_lists_states_and_details() -> None:
    failed_run = record(state="timed_out", verdict=None, phases_s={}, error="too slow")
    output = text(
        run.runs([ListedRun(record=record(verdict="passed")), ListedRun(record=failed_run, detail="node1 does not answer")])
    )
    assert re.search(r"20261121-101500-otter  3\.1  ✓ passed +succeeded      2  12\.3 s  \d+ s", output)
    assert "timed out" in output
    assert "node1 does not answer" in output
    assert "no runs yet" in text(run.runs([]))


def test_runs_on_a_narrow_terminal_keeps_the_state_and_the_checks() -> None:
    failed_run = record(state="failed", verdict=None)
    output = render(run.runs([ListedRun(record=record(verdict="failed")), ListedRun(record=failed_run)]), width=60)
    assert "✗ failed" in output
    assert re.search(r"3\.1  – failed +failed", output)
    predicted_run = record(verdict="failed", as_predicted=True)
    records = [record(verdict="failed"), failed_run, predicted_run]
    narrow_output = render(run.runs([ListedRun(record=item) for item in records]), width=40)
    assert "✗ failed" in narrow_output
    assert "– failed" in narrow_output
    assert "no room for: state" in narrow_output


def result(run_record: RunRecord, **options: object) -> str:
    """Return everything about the run, as text."""
    view = run.details(run_record, RunPaths(Path("/w/runs/3.1/otter")), **options)  # type: ignore[arg-type]
    assert view.mode == "local"
    return text(view)


def brief(run_record: RunRecord, **options: object) -> str:
    """Return what `run` shows."""
    view = results.result(run_record, RunPaths(Path("/w/runs/3.1/otter")), **options)  # type: ignore[arg-type]
    assert view.mode == "local"
    return text(view)


def test_details_of_a_run_with_everything() -> None:
    metrics = {"rows": [{"n": 1, "ms": 12.3456}, {"n": 2, "ms": None}, {"n": 4, "ms": float("nan")}, "no row"]}
    output = [OutputFile(node="node0", path=f"outputs/node0/{number}.json", bytes=1024, sha256="") for number in range(20)]
    refusals = [RefusedFile(node="node1", name="../../x\x1b[31m", reason="leads out of the folder")]
    ended_run = record(outputs=output, output_files=9000, output_bytes=1 << 30, refused=refusals)
    page = result(ended_run, exercise=EXERCISE, metrics=metrics, verdict=VERDICT)
    for words in (
        "3.1 Hello",
        "3.1 Hello\n✗ failed in 12.3 s",
        "2 on 2 nodes (node0, node1), by torchrun",
        "size=64  note='it'\"'\"'s $(x)'",
        "nodes     ms\n    1  12.35\n    2      –\n    4    nan\n    –      –\n",
        "✓  All ranks  2 ranks                    2 ranks",
        "✗  The sum    2                          3",
        "!  Loss       missing                    below 2",
        "–  Bandwidth  not measured: needs a GPU  at least 5 GB/s",
        "  The sum  Fill the tensor anew.",
        "✗ failed in 12.3 s on simulated nodes: 1 passed, 1 failed, 1 error, 1 not measured",
        "9,000 files, 1.0 GiB",
        "outputs/node0/11.json\n           and 8988 more\n",
        "node1  ../../x  leads out of the folder",
    ):
        assert words in page, words
    assert "What went wrong" not in page


def test_run_result_is_its_table_what_did_not_pass_and_what_is_next() -> None:
    metrics = {"rows": [{"n": 1, "ms": 12.3456}, {"n": 2, "ms": None}]}
    output = [OutputFile(node="node0", path="outputs/node0/1.json", bytes=1024, sha256="")]
    refusals = [RefusedFile(node="node1", name="x", reason="leads out of the folder")]
    page = brief(record(outputs=output, refused=refusals), exercise=EXERCISE, metrics=metrics, verdict=VERDICT)
    assert page == (
        "3.1 Hello\n"
        "✗ failed in 12.3 s on simulated nodes: 1 passed, 1 failed, 1 error, 1 not measured\n"
        "\n"
        "Times\n"
        "nodes     ms\n"
        "    1  12.35\n"
        "    2      –\n"
        "\n"
        "✗ The sum: 2; expected 3 [sum]\n"
        "  Fill the tensor anew.\n"
        "! Loss: missing; expected below 2 [loss]\n"
        "  Write it.\n"
        "– Bandwidth: not measured, needs a GPU\n"
        "\n"
        "left out  1 file not collected from the nodes\n"
        "run       20261121-101500-otter, 2 ranks on 2 nodes\n"
        "details   gpucourse show 3.1 --run 20261121-101500-otter --verbose\n"
    )


def test_run_result_counts_many_checks_that_did_not_pass() -> None:
    long_verdict = replace(VERDICT, checks=RESULTS[1:2] * 9 + RESULTS[3:] * 9)
    output = brief(
        record(),
        exercise=EXERCISE,
        metrics={"rows": [{"n": 1, "ms": 1.0}] * 50},
        verdict=long_verdict,
        next_step="gpucourse next",
    )
    assert "✗ and 6 more did not pass" in output
    assert "Times (6 of 50 rows)" in output
    assert len(output.splitlines()) <= 25


def test_run_result_shows_an_error_once_with_one_thing_to_do() -> None:
    quotes = [LogQuote(node="node1", rank=1, line="ValueError: no")]
    title = "Rank 1 raised ValueError in t.py, line 6"
    diagnosis = Diagnosis(
        symptom="script-error", title=title, why="The script itself failed.", next="gpucourse logs x", seen=quotes
    )
    follow_up = Diagnosis(symptom="peer-lost", title="Others lost their peer", why="w", next="n")
    first = RankExit(node="node1", rank=1, code=1, at=1.0)
    failed_run = record(state="failed", first_failure=first, diagnoses=[diagnosis, follow_up])
    output = brief(failed_run)
    assert output.splitlines()[1] == "✗ failed in 12.3 s on simulated nodes: rank 1 on node1 was the first to fail, with code 1"
    assert output.count("ValueError: no") == 1
    assert "  also: Others lost their peer" in output
    assert output.splitlines()[-1] == "Next: gpucourse logs x"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"state": "timed_out"}, "✗ timed out in 12.3 s on simulated nodes: it reached its time limit"),
        ({"state": "cancelled"}, "✗ cancelled in 12.3 s on simulated nodes: you cancelled it"),
        ({"state": "lost", "error": "its nodes are gone"}, "its nodes are gone"),
        ({"state": "failed", "node_exits": [NodeExit(node="node0", code=2)]}, "launcher failed (node0 exited 2)"),
        (
            {"state": "succeeded", "profiled": True},
            "✓ succeeded in 12.3 s on simulated nodes: no points, because the profiler slowed it down",
        ),
    ],
)
def test_run_result_says_in_one_line_how_the_run_went(values: dict[str, object], words: str) -> None:
    assert words in brief(record(**values)).splitlines()[1]


def test_run_result_begins_with_a_wrong_part() -> None:
    part = PartResult(id="p", title="Mine", file="mine.py", verdict="failed", says="it doubles")
    verdict = replace(VERDICT, verdict="passed", checks=RESULTS[:1], parts=(part,))
    output = brief(record(), exercise=EXERCISE, verdict=verdict)
    assert output.splitlines()[1] == "✗ your part is wrong in 12.3 s on simulated nodes: 1 passed"
    assert "your part  mine.py is wrong: it doubles" in output


def test_details_of_an_own_script_show_nothing_of_the_exercise() -> None:
    own_run = record(own_script="/home/me/mytrain.py", verdict="passed")
    metrics = {"rows": [{"n": 1, "ms": 12.3}]}
    output = result(own_run, exercise=EXERCISE, metrics=metrics, verdict=VERDICT, deliverables=Path("/w/deliverables/3.1"))
    assert output.splitlines()[0].split() == ["mytrain.py"]
    assert "counts" in output
    for words in ("3.1 ", "Hello", "Times", "Bandwidth", "question", "passed", "deliverables"):
        assert words not in output, words


@pytest.mark.parametrize(
    ("files", "collected", "message"),
    [(1200, True, "1,200 files, 3.0 MiB, in its outputs/"), (0, True, "no file"), (3, False, None)],
)
def test_run_result_of_a_script_of_the_learner_says_how_much_was_collected(
    files: int, collected: bool, message: str | None
) -> None:
    own_run = record(
        own_script="/home/me/mytrain.py", outputs=[], output_files=files, output_bytes=3 << 20, collected=collected
    )
    lines = [line for line in brief(own_run).splitlines() if line.startswith("collected ")]
    assert lines == ([f"collected  {message}"] if message else [])


def test_details_name_the_rank_that_failed_first() -> None:
    exits = [
        NodeExit(node="node0", code=143, reason="timed_out", killed=3),
        NodeExit(node="node1", code=139),
        NodeExit(node="node2", code=0),
    ]
    first = RankExit(node="node1", rank=1, code=-11, at=1.0)
    output = result(record(state="failed", node_exits=exits, first_failure=first, error="a rank died"))
    for words in (
        "rank 1 on node1, exit code -11",
        "node0: timed out, 3 processes ended",
        "node1: exit code 139 (signal 11)",
        "a rank died",
        "gpucourse logs 20261121-101500-otter --rank 1",
    ):
        assert words in output, words
    assert "node2: " not in output
