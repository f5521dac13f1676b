"""The exercises of module 9 on number formats and on long sequences as a learner runs them, judged by their own checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.course.locate import find_course
from tests.system.exercising import check_healthy, list_failed_checks, needs_torch, run_exercise

pytestmark = [pytest.mark.system, needs_torch]

# --- 9.5 ----------------------------------------------------------------------------------------------------------------

SMALL = {"steps": "8", "width": "32", "layers": "1"}
OPEN_9_5 = {
    "step-runs", "your-products", "kept-bytes", "your-blocks-train", "unbiased",
    "blocks-run", "nothing-saturates", "rows-equal", "others", "trains",
}  # fmt: skip


@pytest.mark.slow
def test_low_precision_solved_gives_the_figures_of_the_lesson(tmp_path: Path) -> None:
    run = run_exercise("9.5", tmp_path / "work", solved=True)
    check_healthy(run, tmp_path)
    kept_bytes = {row["recipe"]: row["kept_bytes"] for row in run.metrics["trained"]}
    assert kept_bytes["e4m3-blocks"] == 1 + 4 / 32
    assert kept_bytes["e4m3-tensor"] == 4
    assert run.metrics["nearest_value"] == 1
    text = " ".join((find_course({}).modules / "09-frontier-training/lesson-6-formats.md").read_text(encoding="utf-8").split())
    errors = {row["scheme"]: row["others_percent"] for row in run.metrics["blocks"]}
    assert f"| MXFP8 (E4M3) | 32 | power of two | 8.25 | {errors['MXFP8']:.1f} % |" in text
    assert f"| MXFP4 (E2M1) | 32 | power of two | 4.25 | {errors['MXFP4']:.1f} % |" in text
    assert f"| NVFP4 (E2M1) | 16 | E4M3 | 4.5 | {errors['NVFP4']:.1f} % |" in text
    gaps = {row["recipe"]: row["loss_gap_percent"] for row in run.metrics["trained"]}
    assert "MXFP8 ends within 0.1 % of float32's loss and NVFP4 within 1 %" in text
    assert abs(gaps["mxfp8"]) < 0.1
    assert abs(gaps["nvfp4"]) < 1
    assert f"E4M3 without scales is {gaps['e4m3-unscaled']:.0f} % above" in text


@pytest.mark.slow
def test_low_precision_solved_trains_in_other_blocks_and_recipes(tmp_path: Path) -> None:
    run = run_exercise("9.5", tmp_path / "work", solved=True, recipes="float32,mxfp4", block="16", **SMALL)
    check_healthy(run, tmp_path, open_checks={"tensor-trains", "unscaled-is-worse", "your-blocks-train", "trains"})
    assert [row["whose"] for row in run.metrics["trained"]] == ["course", "yours"]
    assert any(row["scheme"] == "E4M3, 16 share" for row in run.metrics["blocks"])


def test_low_precision_as_delivered_is_whole_and_its_parts_are_open(tmp_path: Path) -> None:
    run = run_exercise("9.5", tmp_path / "work", recipes="float32,bfloat16", promote="0", **SMALL)
    check_healthy(run, tmp_path, open_checks={*OPEN_9_5, "promotion-helps", "tensor-trains", "unscaled-is-worse"})
    assert "my_blocks.py is open: once it is written, rows 'yours' of scales and of training will be here" in run.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    return x @ weight.T, 'many'\n", "forward keeps str for backward"),
        ("    import os\n    os._exit(3)\n", "the process ended with code 3"),
        ("    return torch.empty(1 << 31, dtype=torch.float32).fill_(1)\n", "my_step.py"),
    ],
    ids=["text", "ends", "8 GiB"],
)
def test_low_precision_names_a_part_that_does_not_run(body: str, words: str, tmp_path: Path) -> None:
    text = (
        "import torch\n\n\ndef stochastic(x, mantissa_bits, generator):\n    return x\n\n\n"
        f"def forward(x, weight, cast, multiply):\n{body}"
    )
    run = run_exercise("9.5", tmp_path / "work", files={"my_step.py": text}, recipes="float32", **SMALL)
    assert run.code == 0, run.output
    assert list_failed_checks(run) >= {"step-runs"}
    assert words in run.metrics["step_error"]


# --- 9.3 ----------------------------------------------------------------------------------------------------------------

OPEN_9_3 = {
    "ring-runs", "ring-equal", "ring-gradients", "ring-bytes", "ring-messages", "even-work", "skips", "holds-one",
    "large-scores", "ulysses-runs", "ulysses-equal", "ulysses-gradients", "ulysses-bytes",
}  # fmt: skip
SHORT = {"length": "48", "heads": "8", "kv_heads": "4", "head_width": "8"}


@pytest.mark.slow
def test_context_parallel_solved_equals_one_process_on_two_forked_ranks_of_two_nodes(tmp_path: Path) -> None:
    run = run_exercise("9.3", tmp_path / "work", ranks=2, solved=True, ranks_per_node="2", **SHORT)
    check_healthy(run, tmp_path)
    assert [row["messages"] for row in run.metrics["ways"]] == [6, 6, 20, 20, 20, 24, 24]
    assert run.metrics["contiguous_over_mean"] == pytest.approx(1.75, rel=0.02)


@pytest.mark.slow
def test_context_parallel_without_a_mask_has_even_work_in_every_share(tmp_path: Path) -> None:
    run = run_exercise("9.3", tmp_path / "work", ranks=2, solved=True, ranks_per_node="1", **SHORT, causal="false")
    check_healthy(run, tmp_path, open_checks={"even-work"})
    assert run.metrics["contiguous_over_mean"] == 1


@pytest.mark.slow
def test_context_parallel_as_delivered_is_whole_and_its_parts_are_open(tmp_path: Path) -> None:
    run = run_exercise("9.3", tmp_path / "work", ranks=2, ranks_per_node="1", **SHORT)
    check_healthy(run, tmp_path, open_checks=OPEN_9_3)
    assert "my_ulysses.py is open: once it is written, rows of your Ulysses will be here" in run.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    return q\n", "my_ring_attention.py"),
        ("    import os\n    os._exit(3 if rank else 0)\n", "rank 1: my_ring_attention.py: the process ended with code 3"),
    ],
    ids=["one tensor", "ends"],
)
def test_context_parallel_names_a_part_that_does_not_run(body: str, words: str, tmp_path: Path) -> None:
    text = f"def share(length, ranks, rank):\n    return None\n\n\ndef forward(q, k, v, positions, rank, *others):\n{body}"
    run = run_exercise("9.3", tmp_path / "work", files={"my_ring_attention.py": text}, ranks=2, ranks_per_node="1", **SHORT)
    assert run.code == 0, run.output
    assert list_failed_checks(run) >= {"ring-runs"}
    assert words in run.metrics["ring_attention_error"]
