"""What is read of a .cu file, and how the times of kernels become GB/s that are possible."""

from __future__ import annotations

import json
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.parts import need
from tests.system.exercising import FOLDERS, needs_torch
from tests.unit.exercises.scripts import beside_the_script

findings = beside_the_script("05-gpu-programming", "findings")

TEXT = """
// __global__ void vector_add(float* in_a_comment) { }
__global__ void __launch_bounds__(256) vector_add(const float* a, int n) {
  printf("a { in a text");  /* OPEN("in a comment") */
  if (n) { return; }
}
template <int T> __global__ __launch_bounds__(64) void tiled(float* a) { OPEN("what?"); }
__global__ void declared(float* a);
"""


def test_a_body_is_what_stands_between_the_braces_of_the_kernel() -> None:
    body = findings.find_body(TEXT, "vector_add")
    assert body.strip().startswith("printf")
    assert body.strip().endswith("}")
    assert not findings.is_open(body)
    assert findings.is_open(findings.find_body(TEXT, "tiled"))
    assert [findings.find_body(TEXT, name) for name in ("declared", "vector")] == [None, None]
    assert findings.list_kernels(TEXT) == ["vector_add", "tiled"]


@pytest.mark.parametrize(
    ("kernel", "needed"),
    [("vector_add", 1200), ("block_sum", 400), ("clip_sum", 800), ("transpose", 800), ("copy", 800), ("column_of_32", None)],
)
def test_bytes_are_those_of_every_array_once(kernel: str, needed: int | None) -> None:
    assert findings.count_bytes(kernel, 100) == needed


@pytest.mark.parametrize(("elements", "shape"), [(1, (1, 1)), (31, (5, 6)), (1000, (31, 32)), (4096, (64, 64))])
def test_a_transpose_has_no_more_numbers_than_asked_for(elements: int, shape: tuple[int, int]) -> None:
    assert findings.shape_of_transpose(elements) == shape


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the emulator needs Linux")
def test_the_lesson_shows_what_a_missing_barrier_gives_in_each_order(tmp_path: Path) -> None:
    need("g++")
    beside = FOLDERS.exercises / "05-gpu-programming" / "solutions" / "my_kernels.cu"
    lesson = (FOLDERS.modules / "05-gpu-programming" / "lesson.md").read_text(encoding="utf-8")
    text = beside.read_text(encoding="utf-8")
    for name, changed in (
        ("barrier", text.replace("    __syncthreads();  // the next", "    // the next")),
        ("atomic", text.replace("atomicAdd(sum, part[0])", "*sum += part[0]")),
    ):
        (folder := tmp_path / name).mkdir()
        (folder / "my_kernels.cu").write_text(changed, encoding="utf-8")
        program = findings.build(folder / "my_kernels.cu", folder)
        for order in range(4):
            result = program.run("block_sum", "256", "1", "1000", order=order)
            row, races = json.loads(result.output), result.kernels["block_sum"].races
            if name == "barrier":
                assert f"| {order} | {row['given']} | {races} |" in lesson
            else:
                assert (row["given"], races > 0) == ("106", True)


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
def test_times_become_speeds_and_what_cannot_be_is_refused(
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
    told = times.time_all(work, rows, elements=50_000_000, block=256, stride=2)
    assert (told.copy_gb_per_s, told.rows["vector_add"]["gb_per_s"]) == (pytest.approx(400 / 3), pytest.approx(160))
    assert told.rows["vector_add"]["percent_of_copy"] == pytest.approx(120)
    assert (told.rows["block_sum"]["gb_per_s"], told.refused) == (None, 1), "200,000 GB/s"
    assert [told.rows[name]["median_ms"] for name in ("transpose", "read_field")] == [None, None]
    assert "clip_sum" not in told.rows, "nothing that leaves its arrays is started on a GPU"
    assert (told.rows["copy"]["sanitizer_errors"], told.rows["copy"]["sanitizer_hazards"]) == (2, 0)
    said = capsys.readouterr().out
    assert "refused: 200,000 GB/s is more than the 320 of the data sheet" in said
    assert "transpose was not timed: it did not end well, or its numbers are wrong" in said


@needs_torch
def test_without_a_gpu_nothing_is_timed_and_the_reason_is_said() -> None:
    times = beside_the_script("05-gpu-programming", "cuda_times")
    work = times.Compilation("sm_75", times.torch.device("cpu"), None)
    told = times.time_all(work, [], elements=1, block=32, stride=1)
    assert told.note.startswith("not measured: GB/s, which need a GPU; no nvcc here")
    assert work.describe("given.cu", "copy", 256) == dict.fromkeys(times.OF_NVCC)
