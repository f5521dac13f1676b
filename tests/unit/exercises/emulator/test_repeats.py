"""A launch that repeats an earlier one does not run again, but has its result."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("repeats.cu")
THREADS = 64 * 130  # of a launch

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the second build is for x86-64")


@pytest.fixture(scope="module")
def program(build: Callable[..., Any]) -> Any:
    return build(SOURCE.read_text(encoding="utf-8"), name=SOURCE.name)


@pytest.mark.parametrize(
    ("case", "value", "runs"),
    [
        ("same", THREADS, 2),  # the first launch is watched, and the second one is kept
        ("other_memory", 6 * THREADS, 6),
        ("other_argument", 5 * THREADS, 6),
        ("other_variable", 5 * THREADS, 6),
        ("read_clock", 1, 6),
        ("read_texture", 0, 6),
    ],
)
def test_run_repeats_only_what_would_be_the_same(program: Any, case: str, value: int, runs: int) -> None:
    result = program.run(case, limit_s=60)
    assert (result.output, result.first_fault()) == (f"{value} after {runs} runs\n", None)
    assert sum(kernel.threads for kernel in result.kernels.values()) == 6 * THREADS


@pytest.mark.parametrize(
    ("case", "runs"),
    [
        ("pointer", 5),  # each kernel once by its name, then the first launch, and one of each kernel that is kept
        ("pointer_of_all", 8),  # a launch does not say what a variable outside of functions points to
    ],
)
def test_run_knows_the_kernels_of_a_pointer(program: Any, case: str, runs: int) -> None:
    result = program.run(case, limit_s=60)
    assert (result.output, result.first_fault()) == (f"{-THREADS} after {runs} runs\n", None)
    assert {name: kernel.launches for name, kernel in result.kernels.items()} == {"add": 4, "subtract": 4}


def test_run_prints_again_what_a_kernel_prints(program: Any) -> None:
    assert program.run("print", limit_s=60).output == "once\n" * 6 + "0 after 6 runs\n"
