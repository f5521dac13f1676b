"""Invalid settings of exercises: the script ends with a sentence that states the rule, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.exercising import SLOW_16_BITS, needs_emulator, needs_torch, run_exercise, type_flags

pytestmark = [pytest.mark.system, needs_torch]

REFUSALS = [  # the exercise, the flags, the exit code, what is printed
    ("0.1", "--hidden=30", 2, "30 is not a multiple of 4"),
    ("0.1", "--batch-size=2000", 1, "too few for a step of 2000 pieces of 64 (--batch-size)"),
    ("0.3", "--nnodes=0", 2, "there must be 1 to 32 processes in all"),
    ("0.3", "--answer=many", 2, "write the first and the last, such as 40-47"),
    ("1.1", "--small=300 --size=200", 2, "--small < --size"),
    ("1.2", "--engine=vllm", 1, "vLLM needs a GPU"),
    ("3.1", "--elements=0", 2, "error:"),
    ("3.3", "--collective=all", 1, "one rank has no partner"),
    ("3.6", "--batch-size=12", 2, "must be a multiple of each of [1, 2, 4, 8]"),
    ("4.2", "--sizes=many", 2, "whole numbers with commas"),
    ("4.2", "--dtypes=float16,tf32", 1, "nothing was measured: cpu multiplies none of float16,tf32"),
    ("4.3", "--model=tiny --input-len=1000 --output-len=100", 2, "with --input-len at most 1024, the limit of tiny"),
    ("5.1", "--block=96", 2, "--block must be 32, 64, 128, 256, 512 or 1024"),
    ("5.2", "--steps=4", 2, "--steps must be at least 5"),
    ("5.3", "--n=96,100", 2, "--n 100: a multiple of 32"),
    ("5.3", "--n=1024", 2, "without a GPU and nvcc the emulator counts"),
    ("5.3", "--tile=12", 2, "--tile 12: 8, 16 or 32"),
    ("5.3", "--arch=sm_1", 2, "--arch: sm_1 is not one of"),
    ("5.4", "--chunks=256 --megabytes=64", 2, "256 chunks of 64 MB are 16,384 MB of page-locked memory"),
    ("5.5", "--width=32 --heads=5", 2, "--width must be a multiple of --heads: 32 over 5 leaves 2"),
    ("5.7", "--size=8", 2, "--size must be 0 or at least 256"),
    ("5.7", "--threads=4000", 2, "the cores of this node"),
    ("5.8", "--template=5000", 2, "at most --samples 4096"),
    ("5.8", "--batch-sizes=99999", 2, "each must be from 1 to --signals 16384"),
    ("5.9", "--samples=100", 2, "--samples must be a multiple of 32"),
    ("6.1", "--width=40", 2, "--width must be a multiple of 32"),
    ("6.2", "", 2, "deploy 6 --nodes 2"),
    ("6.2", "--ranks-per-node=5", 2, "--batch-size (48) must be a multiple of the number of ranks, 5"),
    ("6.3", "--ranks-per-node=1", 1, "one rank has nothing to divide: take two nodes (gpucourse deploy 6 --nodes 2)"),
    ("6.3", "--ranks-per-node=2 --layouts=2by2", 2, "--layouts must be auto, or numbers such as 2x2x2,1x2x4"),
    ("6.3", "--ranks-per-node=2 --width=16 --heads=3", 2, "3 heads cannot share 16 units"),
    ("6.3", "--ranks-per-node=2 --batch-size=7 --micro-batches=2", 2, "--batch-size must be a multiple of --micro-batches"),
    ("6.4", "--ranks-per-node=1", 1, "one rank has nothing to shard: take two nodes (gpucourse deploy 6 --nodes 2)"),
    ("7.3", "--record=700", 2, "a multiple of 512"),
    ("7.4", "--engines=bare,lxc", 2, "there is no engine lxc"),
    ("8.2", "--prompt=3000", 2, "--prompt + --answer (3200) must be at most --longest"),
    ("8.3", "--pages=100", 2, "the longest request needs 533 pages, but there are only 100: --pages=533 or more"),
    ("8.4", "--page=512", 2, "nothing can be found with --page=512: the shortest prompt has"),
    ("8.5", "--gamma=17", 2, "--gamma must be from 1 to 16"),
    ("8.6", "--group=48", 2, "--group must divide the width of the model, 64"),
    ("8.7", "--senders=4 --receivers=2", 2, "--senders (4) and --receivers (2) need as many ranks together, and 4 exist"),
    ("8.8", "--requests=100", 2, "--requests (100) is too small for this load: it needs 462"),
    ("9.1", "--ranks-per-node=3", 2, "the number of ranks (3) must be a power of two"),
    ("9.1", "--ranks-per-node=4 --numbers=3", 2, "--numbers (3) must be at least the number of ranks, 4"),
    ("9.2", "--ranks-per-node=2 --experts=9", 2, "--experts (9) must be a multiple of the number of ranks, 2"),
    ("9.2", "--ranks-per-node=2 --capacity-factors=1,x", 2, "--capacity-factors must be numbers"),
    ("9.3", "--ranks-per-node=2 --length=10", 2, "--length (10) must be a multiple of twice the number of ranks, 4"),
    ("9.4", "--ranks-per-node=2 --micro-batches=12", 2, "--micro-batches (12) must be a multiple of --stages (8)"),
    ("9.5", "--recipes=float32,fp6", 2, "--recipes has 'fp6'"),
    ("9.6", "--ranks-per-node=2 --layers=3", 2, "--layers (3) must be at least 5"),
    ("9.7", "--ranks-per-node=2 --widths=64,32", 2, "each larger than the one before"),
    ("9.8", "--ranks-per-node=2 --real-fault=skips", 2, "2 ranks that call different operations have no majority"),
    ("B.2", "--tokens=0", 2, "--tokens from 1 to 512"),
]  # fmt: skip


def list_rows() -> list[object]:
    """Return the rows of the table; the first of each module is part of `make test`."""
    rows: list[object] = []
    modules = set()
    for row in REFUSALS:
        module = row[0].partition(".")[0]
        marks = [pytest.mark.slow] if module in modules else []
        marks += [needs_emulator] if row[0] == "5.3" else []
        modules.add(module)
        rows.append(pytest.param(*row, marks=marks))
    return rows


@pytest.mark.parametrize(("exercise", "words", "code", "sentence"), list_rows())
def test_a_script_refuses_invalid_settings_and_states_the_rule(
    exercise: str, words: str, code: int, sentence: str, tmp_path: Path
) -> None:
    exit_code, output = type_flags(exercise, tmp_path / "work", *words.split())
    assert (exit_code, sentence in " ".join(output.split()), "Traceback" in output) == (code, True, False), output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "ranks", "settings", "sentence"),
    [
        ("3.6", 2, {"micro_batches": "1"}, "with 1f1b at least as many micro-batches as ranks (--micro-batches 1)"),
        ("3.9", 1, {}, "2 copies (--dp) of 2 slices (--tp) are 4 ranks, but there are 1"),
        ("6.3", 2, {"ranks_per_node": "1", "layouts": "2x2x2"}, "no layout is left: 2x2x2 is left out"),
    ],
)  # fmt: skip
def test_too_few_ranks_are_refused(exercise: str, ranks: int, settings: dict[str, str], sentence: str, tmp_path: Path) -> None:
    run = run_exercise(exercise, tmp_path / "work", ranks=ranks, **settings)
    assert (run.code, sentence in run.output, "Traceback" in run.output) == (1, True, False), run.output
    assert run.metrics == {}


def test_16_bits_are_refused_when_the_processor_has_no_kernel_for_them(tmp_path: Path) -> None:
    run = run_exercise("1.1", tmp_path / "work", SLOW_16_BITS, small="64", size="256", dtype="float16")
    assert (run.code, "Traceback" in run.output) == (1, False), run.output
    assert "no fast kernel for float16: 256 x 256 would take minutes. Use float32" in run.output
