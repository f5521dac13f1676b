"""How the times of kernels become GB/s that are possible."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

PROGRAM = """#!/bin/sh
case "$2" in
  copy) echo '{"size": 1, "wrong": 0}'; echo '{"seconds": [0.004, 0.002, 0.003]}';;
  vector_add) echo '{"seconds": [0.00375]}';;
  block_sum) echo '{"seconds": [0.000001]}';;
  read_field) echo '{"size": 1, "wrong": 3}'; echo '{"seconds": [1]}';;
  *) echo '{"cuda_error": "an illegal memory access was encountered"}'; exit 3;;
esac
"""
SANITIZER = """#!/bin/sh
case "$*" in *memcheck*) echo "===== ERROR SUMMARY: 2 errors";; *) echo "===== RACECHECK SUMMARY: 0 hazards displayed";; esac
"""
SOUND = {"wrong_sizes": 0, "out_of_bounds": 0, "ended": ""}


def write_program(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


@needs_torch
def test_time_all_refuses_speeds_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = beside_the_script("05-gpu-programming", "cuda_times")
    monkeypatch.setattr(times.torch.cuda, "get_device_name", lambda _device: "Tesla T4")
    write_program(tmp_path / "compute-sanitizer", SANITIZER)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program: Future[Path] = Future()
    program.set_result(write_program(tmp_path / "program", PROGRAM))
    files = ("given.cu", "my_kernels.cu", "my_warps.cu")
    work = times.Compilation("sm_75", times.torch.device("cuda", 0), "nvcc", programs=dict.fromkeys(files, program))
    rows: list[dict[str, Any]] = [
        {"kernel": name, **SOUND} for name in ("copy", "vector_add", "block_sum", "transpose", "read_field")
    ]
    rows.append({"kernel": "clip_sum", **SOUND, "out_of_bounds": 1})
    timings = times.time_all(work, rows, elements=50_000_000, block=256, stride=2)
    assert (timings.copy_gb_per_s, timings.rows["vector_add"]["gb_per_s"]) == (pytest.approx(400 / 3), pytest.approx(160))
    assert timings.rows["vector_add"]["percent_of_copy"] == pytest.approx(120)
    assert (timings.rows["block_sum"]["gb_per_s"], timings.refused) == (None, 1), "200,000 GB/s"
    assert [timings.rows[name]["median_ms"] for name in ("transpose", "read_field")] == [None, None]
    assert "clip_sum" not in timings.rows, "nothing that leaves its arrays is started on a GPU"
    assert (timings.rows["copy"]["sanitizer_errors"], timings.rows["copy"]["sanitizer_hazards"]) == (2, 0)
    output = capsys.readouterr().out
    assert "refused: 200,000 GB/s is more than the 320 of the data sheet" in output
    assert "transpose was not timed: it failed, or its numbers are wrong" in output


@needs_torch
def test_time_all_says_why_nothing_is_timed_without_a_gpu() -> None:
    times = beside_the_script("05-gpu-programming", "cuda_times")
    work = times.Compilation("sm_75", times.torch.device("cpu"), None)
    timings = times.time_all(work, [], elements=1, block=32, stride=1)
    assert timings.note.startswith("not measured: GB/s, which need a GPU; no nvcc here")
    assert work.describe("given.cu", "copy", 256) == dict.fromkeys(times.OF_NVCC)
