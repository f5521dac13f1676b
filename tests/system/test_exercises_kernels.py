"""The Triton kernels of module 5 as a learner runs them: as delivered, with the solution, and where Triton serves no GPU."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.parts import KERNELS, needs_module
from tests.system.exercising import (
    FOLDERS,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    read_finished,
    run_solved,
    start,
    wait,
    with_a_gpu,
    with_faults,
)

pytestmark = [pytest.mark.system, pytest.mark.slow, needs_torch, needs_module("triton", installed=KERNELS)]

FOLDER = FOLDERS.exercises / "05-gpu-programming"
NARROW = {"rows": "16", "columns": "200,256", "archs": "sm_89"}


def test_the_norm_as_delivered_is_wrong_outside_full_blocks_alone(tmp_path: Path) -> None:
    run = with_faults("5.6", tmp_path / "work", **NARROW)
    assert run.code == 0, run.output
    short, full = run.metrics["lengths"]
    assert short["error_p0"] > 0.01 > 1e-5 > full["error_p0"]
    assert list_failed_checks(run) == {"right"}, run.output
    assert run.metrics["broken"] is None
    assert run.metrics["saving"] == pytest.approx(2.1, rel=0.04)
    assert run.output.count("no dropout yet") == 1
    check_plots_and_tables(run, tmp_path)


def test_the_finished_norm_passes_every_check_of_a_processor(tmp_path: Path) -> None:
    run = run_solved("5.6", tmp_path / "work", "my_norm.py", **NARROW)
    assert run.code == 0, run.output
    assert list_unanswered(run) == {}, run.output
    assert [row["loads"] for row in run.metrics["passing"]] == [6, 24, 12, 6]
    assert (tmp_path / "work" / "kernel-sm_89.ptx").read_text(encoding="utf-8").count(".target sm_89") == 1


def test_a_kernel_that_only_the_interpreter_takes_is_refused_with_its_line(tmp_path: Path) -> None:
    line = "    y = centred * tl.rsqrt(variance + eps) * weight + bias\n"
    run = with_faults(
        "5.6", tmp_path / "work", ("my_norm.py", line, f"{line}    for _ in {{1: 1}}:\n        y += 0\n"), **NARROW
    )
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"right", "compiles"}, run.output
    assert re.search(r"yours, at 1000, sm_89: .*for _ in \{1: 1\}", run.output), run.output


def test_a_gpu_that_triton_does_not_serve_is_named_and_not_measured(tmp_path: Path) -> None:
    exercise, script = lay_out("5.6", tmp_path / "work")
    process = start([sys.executable, script.name, *flags(exercise, **NARROW)], script.parent, with_a_gpu(script.parent))
    output = wait(process)
    assert process.returncode == 0, output
    assert "in the interpreter, on the processor: Triton does not support " in output
    metrics = read_finished(exercise, 0, output, script.parent, 1).metrics
    assert (metrics["cuda"], metrics["lengths"][0]["median_ms"]) == (None, None)


SHORT = {"lengths": "40", "heads": "1", "d": "16", "block_q": "16", "block_k": "16", "archs": "sm_89"}


def test_flash_attention_as_delivered_counts_what_it_loads(tmp_path: Path) -> None:
    run = with_faults("5.10", tmp_path / "work", **SHORT)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == set(), run.output
    assert (run.metrics["bytes_off"], run.metrics["broken"], run.metrics["softmax_broken"]) == (0, None, None)
    assert (run.metrics["challenge"], run.metrics["gradients"]) == ("open", [])
    assert run.metrics["saving"] == pytest.approx((4 * 40 + 4 * 16) / (2 * 16 * (1 + 3)), rel=1e-3)
    assert run.metrics["timed"] == [], "no figure of a GPU without one"


def test_flash_attention_finished_passes_every_check_of_a_processor(tmp_path: Path) -> None:
    run = run_solved("5.10", tmp_path / "work", "my_softmax.py", "my_attention.py", "my_backward.py", **SHORT)
    assert run.code == 0, run.output
    assert list_unanswered(run) == {}, run.output
    assert len(list((tmp_path / "work").glob("attention-sm_89-*.ptx"))) == 2
    assert run.metrics["challenge"] == "right"
    assert {(row["gradient"], row["kind"]) for row in run.metrics["gradients"]} == {
        (x, y) for x in "qkv" for y in ("full", "causal")
    }


def test_a_product_that_a_gpu_would_round_is_seen_in_the_ptx(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    exercise, script = lay_out("5.10", folder)
    text = (FOLDER / "solutions" / "my_attention.py").read_text(encoding="utf-8")
    (folder / "my_attention.py").write_text(text.replace(', input_precision="ieee"', ""), encoding="utf-8")
    settings = flags(exercise, **(SHORT | {"d": "32", "block_q": "32", "block_k": "32"}))
    process = start([sys.executable, script.name, *settings], folder, environment(folder))
    output = wait(process)
    assert list_failed_checks(read_finished(exercise, process.returncode, output, folder, 1)) == {"no-tf32"}, output
