"""The kernels of module 5, in CUDA and in Triton, as a learner runs them: as delivered, solved, and without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts import KERNELS, needs_module
from tests.system.exercising import (
    check_healthy,
    list_failed_checks,
    list_open_checks,
    needs_emulator,
    needs_torch,
    run_exercise,
)

pytestmark = [pytest.mark.system, needs_torch]
needs_triton = needs_module("triton", installed=KERNELS)


# --- 5.0, 5.1 and 5.3: kernels in CUDA ----------------------------------------------------------------------------------

YOUR_FIRST_KERNELS = {
    "right", "every-order", "ends", "inside", "no-races", "no-divergence", "written-first", "halo-once", "dot-once",
}  # fmt: skip


@pytest.mark.slow
@needs_emulator
def test_twelve_kernels_are_open_and_the_walks_of_the_course_are_counted(tmp_path: Path) -> None:
    run = run_exercise("5.0", tmp_path / "work")
    check_healthy(run, tmp_path, open_checks=YOUR_FIRST_KERNELS)
    assert (run.metrics["walk_sectors_times"], run.metrics["walk_bytes_apart"], run.metrics["written"]) == (8, 0, 0)


@pytest.mark.slow
@needs_emulator
@pytest.mark.parametrize("block", ["32", "1024"])
def test_twelve_solved_kernels_pass_every_check_of_a_processor(tmp_path: Path, block: str) -> None:
    run = run_exercise("5.0", tmp_path / "work", solved=True, block=block)
    check_healthy(run, tmp_path)
    assert [row["right_sizes"] for row in run.metrics["kernels"]] == [5] * 12


YOUR_KERNELS = {
    "right", "every-order", "ends", "inside", "no-races", "no-divergence", "written-first", "one-atomic",
    "transpose-coalesced", "transpose-banks", "clip-warps", "clip-once",
}  # fmt: skip


@pytest.mark.slow
@needs_emulator
def test_kernels_of_the_course_are_counted_and_yours_are_open(tmp_path: Path) -> None:
    run = run_exercise("5.1", tmp_path / "work", stride="5")
    check_healthy(run, tmp_path, open_checks=YOUR_KERNELS)
    rows = {row["kernel"]: row for row in run.metrics["kernels"]}
    loads = {name: row["load_sectors_per_request"] for name, row in rows.items()}
    assert [loads[name] for name in ("copy", "shifted_copy", "strided_copy", "read_field")] == [4, 5, 20, 16]
    assert [rows[name]["bank_conflicts_per_request"] for name in ("column_of_32", "column_of_34")] == [31, 1]
    assert (rows["transpose"]["store_sectors_per_request"], rows["clip_sum"]["lanes_per_request"]) == (32, 16)
    assert rows["vector_add"]["out_of_bounds"] > 0
    assert rows["vector_add"]["where"].startswith("my_kernels.cu:17: thread (1,0,0) of block (0,0,0) reads")
    assert (run.metrics["blocks"], run.metrics["bytes_off"], run.metrics["copy_gb_per_s"]) == (16, 0, None)


@pytest.mark.slow
@needs_emulator
def test_solved_kernels_pass_every_check_of_a_processor(tmp_path: Path) -> None:
    run = run_exercise("5.1", tmp_path / "work", solved=True, block="64", elements="100000")
    check_healthy(run, tmp_path)
    assert (run.metrics["blocks"], run.metrics["sizes"]) == (1563, [1, 31, 257, 1000])


@pytest.mark.slow
@needs_emulator
def test_three_products_are_counted_and_two_are_open(tmp_path: Path) -> None:
    run = run_exercise("5.3", tmp_path / "work", n="64", arch="sm_75")
    check_healthy(run, tmp_path, open_checks={"yours-right", "no-races", "no-conflicts", "tiled-saves", "registers-save"})
    values = run.metrics
    assert (values["asked_mb"], values["naive"]["load_sectors_per_request"]) == (8 * 64**3 / 1e6, 16.5)
    assert (values["coalesced"]["load_sectors_per_request"], values["tensor"]["flop_per_byte"]) == (2.5, 8.0)
    assert {values[name]["state"] for name in ("tiled", "registers")} == {"not written yet"}
    assert (values["timed"], values["refused"]) == ([], 0), "what needs a GPU is not made up"
    assert {row["kernel"] for row in values["compiled"]} in (set(), {"naive", "coalesced", "tensor"}), "with nvcc, or without"


# --- 5.6 and 5.10: kernels in Triton ------------------------------------------------------------------------------------

NARROW = {"rows": "16", "columns": "200,256", "archs": "sm_89"}
SHORT = {"lengths": "40", "heads": "1", "d": "16", "block_q": "16", "block_k": "16", "archs": "sm_89"}


@pytest.mark.slow
@needs_triton
def test_the_norm_as_delivered_is_wrong_outside_full_blocks_alone(tmp_path: Path) -> None:
    run = run_exercise("5.6", tmp_path / "work", **NARROW)
    check_healthy(run, tmp_path, failures={"right"}, open_checks=set(list_open_checks(run)))
    short, full = run.metrics["lengths"]
    assert short["error_p0"] > 0.01 > 1e-5 > full["error_p0"]
    assert run.metrics["saving"] == pytest.approx(2.1, rel=0.04)
    assert run.metrics["backward_of_forward"] == pytest.approx(0.83, abs=0.02)


@pytest.mark.slow
@needs_triton
def test_the_finished_norm_passes_every_check_of_a_processor(tmp_path: Path) -> None:
    run = run_exercise("5.6", tmp_path / "work", solved=True, **NARROW)
    check_healthy(run, tmp_path)
    assert [row["loads"] for row in run.metrics["passing"]] == [6, 24, 12, 6]
    assert [row["pass"] for row in run.metrics["passes"]] == ["forward", "backward"]
    assert (tmp_path / "work" / "kernel-sm_89.ptx").read_text(encoding="utf-8").count(".target sm_89") == 1


@pytest.mark.slow
@needs_triton
def test_flash_attention_as_delivered_counts_what_it_loads(tmp_path: Path) -> None:
    run = run_exercise("5.10", tmp_path / "work", **SHORT)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == set()
    assert (run.metrics["bytes_off"], run.metrics["broken"], run.metrics["softmax_broken"]) == (0, None, None)
    assert [row["way"] for row in run.metrics["training"]] == ["plain attention"]
    assert run.metrics["saving"] == pytest.approx((4 * 40 + 4 * 16) / (2 * 16 * (1 + 3)), rel=1e-3)
    assert run.metrics["timed"] == [], "no figure of a GPU without one"


@pytest.mark.slow
@needs_triton
def test_flash_attention_finished_passes_every_check_of_a_processor(tmp_path: Path) -> None:
    solved = ("my_softmax.py", "my_attention.py", "my_backward.py")
    run = run_exercise("5.10", tmp_path / "work", solved=solved, **SHORT)
    check_healthy(run, tmp_path)
    assert len(list((tmp_path / "work").glob("attention-sm_89-*.ptx"))) == 2
    plain, yours, whole = run.metrics["training"]
    assert yours["saved_bytes"] == whole["saved_bytes"] < plain["saved_bytes"], "no weights are kept"
    assert run.metrics["kernel_calls"] == 20, "2 layers in 10 steps"
