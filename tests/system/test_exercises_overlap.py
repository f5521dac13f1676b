"""5.4 and 5.5 as a learner runs them: as delivered, and on a GPU that the processor plays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.system.exercising import (
    FOLDERS,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    needs_torch,
    read_finished,
    start,
    wait,
    with_a_gpu,
    with_faults,
)

pytestmark = [pytest.mark.system, needs_torch]

SCRIPTS = FOLDERS.exercises / "05-gpu-programming"


def test_as_delivered_the_pipeline_is_right_and_overlaps_nothing(tmp_path: Path) -> None:
    run = with_faults("5.4", tmp_path / "work")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"overlaps"}, "which says nothing while the part is as delivered"
    assert (run.metrics["best_units"], run.metrics["two_buffers_percent"]) == (10, None)
    assert (tmp_path / "work" / "timeline.txt").read_text(encoding="utf-8").count("copy out") == 2
    assert max(map(len, run.output.splitlines()[:-2])) <= 72, "beside the rank it fits into 80 columns"


def test_chunks_that_the_host_has_no_room_for_are_refused(tmp_path: Path) -> None:
    exercise, script = lay_out("5.4", tmp_path / "work")
    words = [sys.executable, script.name, *flags(exercise, chunks="256", megabytes="64")]
    process = start(words, script.parent, environment(script.parent))
    output = wait(process)
    assert process.returncode == 2
    assert "256 chunks of 64 MB are 16,384 MB of page-locked memory" in output


def test_a_chunk_without_a_megabyte_is_refused(tmp_path: Path) -> None:
    exercise, script = lay_out("5.4", tmp_path / "work")
    words = [sys.executable, script.name, *flags(exercise), "--megabytes=0"]
    process = start(words, script.parent, environment(script.parent))
    output = wait(process)
    assert process.returncode == 2
    assert "--buffers and --megabytes at least 1" in output


@pytest.mark.slow
def test_on_a_gpu_the_pipeline_is_timed_with_its_own_streams(tmp_path: Path) -> None:
    exercise, script = lay_out("5.4", tmp_path / "work")
    (script.parent / "my_pipeline.py").write_bytes((SCRIPTS / "solutions" / "my_pipeline.py").read_bytes())
    words = [sys.executable, script.name, *flags(exercise, chunks="3", megabytes="1")]
    process = start(words, script.parent, with_a_gpu(script.parent))
    output = wait(process)
    assert process.returncode == 0, output
    values = read_finished(exercise, 0, output, script.parent, 1).metrics
    assert (values["broken"], values["gpu"]["chunks_wrong"]) == ("no error", 0)
    assert values["gpu"]["async_engines"] is None, "there is no driver that could say"
    assert min(values["gpu"][key] for key in ("sequential_ms", "pageable_ms", "best_ms", "compute_ms")) > 0


def test_as_delivered_the_graph_never_sees_a_second_request(tmp_path: Path) -> None:
    run = with_faults("5.5", tmp_path / "work")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"right", "falls-back"}, "which say nothing while the part is as delivered"
    assert run.metrics["eager_operations"] == run.metrics["operations_by_formula"] == 44
    assert run.metrics["served"]["wrong"] == 3 * (40 - 1), "the first request of each size is right"
    assert {row["p50_us"] for row in run.metrics["rows"]} == {None}
    assert "operation not permitted when stream is capturing" in run.output


def test_heads_that_do_not_divide_the_width_are_refused(tmp_path: Path) -> None:
    exercise, script = lay_out("5.5", tmp_path / "work")
    process = start([sys.executable, script.name, *flags(exercise, heads="5")], script.parent, environment(script.parent))
    output = wait(process)
    assert process.returncode == 2
    assert "--width must be a multiple of --heads: 32 over 5 leaves 2" in output


@pytest.mark.slow
def test_on_a_gpu_eager_graph_and_compiled_requests_are_timed(tmp_path: Path) -> None:
    exercise, script = lay_out("5.5", tmp_path / "work")
    (script.parent / "my_server.py").write_bytes((SCRIPTS / "solutions" / "my_server.py").read_bytes())
    words = [sys.executable, script.name, *flags(exercise, layers="1", batch_sizes="1", requests="10")]
    process = start(words, script.parent, with_a_gpu(script.parent) | {"TORCHDYNAMO_DISABLE": "1"})
    output = wait(process)
    assert process.returncode == 0, output
    run = read_finished(exercise, 0, output, script.parent, 1)
    assert {row["way"]: row["p50_us"] > 0 for row in run.metrics["rows"]} == dict.fromkeys(("eager", "graph", "compile"), True)
    assert run.metrics["graph"]["operations_per_request"] == 3
    assert list_failed_checks(run) == set()
