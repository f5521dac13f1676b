"""Every fault that the emulator reports, by a kernel with the fault and one without: who, where, in which line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("faults.cu")
LINES = SOURCE.read_text(encoding="utf-8").splitlines()
FIRST = "thread (0,0,0) of block (0,0,0)"


def place(comment: str) -> str:
    """The line that ends with this comment, as the emulator names it."""
    return f"faults.cu:{next(number for number, line in enumerate(LINES, 1) if line.endswith(f'// {comment}'))}"


@pytest.fixture(scope="module")
def program(build: Callable[..., Any]) -> Any:
    return build(SOURCE.read_text(encoding="utf-8"), name=SOURCE.name)


@pytest.fixture(scope="module")
def textbook(build: Callable[..., Any]) -> Any:
    return build(SOURCE.with_name("repertoire.cu").read_text(encoding="utf-8"))


def run(program: Any, *words: str) -> tuple[Any, str]:
    """The kernel that ran, and what CUDA would say."""
    result = program.run(*words)
    (kernel,) = result.kernels.values()
    assert result.code == 0
    return kernel, result.output


@pytest.mark.parametrize(
    "words",
    [
        "guard",
        "before 1",
        "dynamic 0",
        "fixed_size 0",
        "freed 0",
        "globals 0",
        "null 0",
        "host 0",
        "far 0",
        "pairs 0",
        "warps 2",
        "lanes 1",
        "lanes 2",
        "neighbours",
        "pair_of_halves",
        "blocks 1",
        "one_block 1",
        "last_block 1",
        "early_return 64",
        "two_barriers 64",
        "warp_and_block 32",
        "masks 0xaaaaaaaa 0x55555555",
        "two_shuffles 32",
        "unwritten 32",
    ],
)
def test_first_fault_of_a_right_kernel_is_none(program: Any, words: str) -> None:
    kernel, output = run(program, *words.split())
    assert (kernel.first_fault(), output) == (None, "no error")


@pytest.mark.parametrize(
    ("words", "count", "says"),
    [
        (
            "no_guard",
            32,
            f"{place('reads past the end')}: thread (0,0,0) of block (2,0,0) reads 4 bytes at byte 256 of an "
            "allocation of 256 bytes",
        ),
        (
            "before 0",
            1,
            f"{place('writes before the beginning')}: {FIRST} writes 4 bytes 4 bytes before an allocation of 256 bytes",
        ),
        (
            "dynamic 1",
            1,
            f"{place('writes past the dynamic memory')}: thread (31,0,0) of block (0,0,0) writes 4 bytes at byte 128 of the "
            "128 bytes of dynamic shared memory",
        ),
        (
            "fixed_size 32",
            32,
            f"{place('writes past an array')}: {FIRST} writes 4 bytes at byte 128 of the 128 bytes of first in shared memory",
        ),
    ],
)
def test_first_fault_names_an_access_out_of_bounds(program: Any, words: str, count: int, says: str) -> None:
    kernel, output = run(program, *words.split())
    assert (kernel.out_of_bounds, kernel.where, kernel.first_fault(), output) == (count, says, says, "no error")


def test_first_fault_names_a_use_after_free(program: Any) -> None:
    kernel, _ = run(program, "freed", "1")
    assert kernel.used_after_free == 32
    assert kernel.first_fault() == (
        f"{place('reads what was given')}: {FIRST} reads 4 bytes of memory that cudaFree has given back"
    )


@pytest.mark.parametrize(
    ("words", "says", "error"),
    [
        ("null 1", "reads 4 bytes through a null pointer", "an illegal memory access was encountered"),
        (
            "host 1",
            "reads 4 bytes of the host's memory: a kernel sees only what cudaMalloc gave",
            "an illegal memory access was encountered",
        ),
        ("far 1", "reads 4 bytes far from everything that cudaMalloc gave", "an illegal memory access was encountered"),
        (
            "globals 1",
            "reads the host's variable of_host: give it to the kernel as an argument (nvcc refuses this)",
            "an illegal memory access was encountered",
        ),
        ("pairs 1", "reads 8 bytes at an address that is no multiple of 8 (misaligned address)", "misaligned address"),
    ],
)
def test_first_fault_names_an_illegal_address_that_ends_the_kernel(program: Any, words: str, says: str, error: str) -> None:
    kernel, output = run(program, *words.split())
    comments = {"pairs 1": "reads two floats", "globals 1": "reads a variable of the host"}
    line = place(comments.get(words, "reads what was given"))
    assert kernel.first_fault() == f"{line}: {FIRST} {says}"
    assert (kernel.illegal_address, output) == (1, error)


@pytest.mark.parametrize("words", ["warps 0", "warps 1", "lanes 0", "lanes 3"])
def test_race_in_shared_memory_names_both_threads(program: Any, words: str) -> None:
    """Between warps __syncwarp() is not enough; within a warp a shuffle orders no memory."""
    kernel, _ = run(program, *words.split())
    size = 64 if words.startswith("warps") else 32
    reader, writer = place("reads another's place"), place("writes a place")
    assert kernel.races >= size / 2
    assert kernel.first_fault() in {
        f"{line}: thread ({me},0,0) of block (0,0,0) {kind} the same place of shared memory (s) that thread "
        f"({size - 1 - me},0,0) of block (0,0,0) {other} ({other_line}), and no barrier is between them"
        for line, kind, other, other_line in ((reader, "reads", "writes", writer), (writer, "writes", "reads", reader))
        for me in range(size)
    }


def test_race_between_blocks_names_both(program: Any) -> None:
    kernel, _ = run(program, "blocks", "0")
    line = place("no atomic")
    assert kernel.race == (
        f"{line}: thread (0,0,0) of block (1,0,0) reads the same place of global memory that {FIRST} writes "
        f"({line}), and blocks run in any order, so only atomic functions may do that"
    )


def test_race_in_global_memory_within_a_block(program: Any) -> None:
    kernel, _ = run(program, "one_block", "0")
    assert kernel.races
    assert kernel.race.startswith(f"{place('no atomic')}: thread (1,0,0) of block (0,0,0)")


def test_race_of_a_last_block_without_a_fence(program: Any) -> None:
    kernel, _ = run(program, "last_block", "0")
    reader = place("reads other blocks' parts")
    assert kernel.race.startswith(f"{reader}: thread (0,0,0) of block (3,0,0) reads the same place of global memory")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "early_return 40",
            f"{place('not all come')}: {FIRST} waits at a barrier that 24 of the block's 64 threads never "
            "reach, such as thread (40,0,0) of block (0,0,0)",
        ),
        (
            "two_barriers 8",
            f"{place('some here')}: {FIRST} waits at a barrier, and thread (8,0,0) of block (0,0,0) at "
            f"another one ({place('others here')})",
        ),
        (
            "two_shuffles 8",
            f"{place('some shuffle here')}: {FIRST} waits at a barrier, and thread (8,0,0) of block (0,0,0) at another one "
            f"({place('others shuffle here')})",
        ),
        (
            "warp_and_block 8",
            f"{place('waits for its warp')}: {FIRST} waits at a barrier of its warp, and thread (8,0,0) of "
            f"block (0,0,0) at __syncthreads() ({place('waits for its block')})",
        ),
        (
            "masks 0xaaaaaaab 0x55555557",
            f"{place('waits with another')}: {FIRST} waits at a barrier of its warp, and its mask names "
            f"thread (1,0,0) of block (0,0,0), which waits with another one ({place('waits with one mask')})",
        ),
        (
            "masks 0xaaaaaaaa 0x10",
            f"{place('waits with another')}: {FIRST} calls a function of its warp with a mask that leaves itself out",
        ),
    ],
)
def test_diverged_names_a_barrier_that_some_never_reach(program: Any, words: str, says: str) -> None:
    kernel, _ = run(program, *words.split())
    assert kernel.barrier_divergence >= 1
    assert kernel.diverged == says


def test_first_fault_names_a_read_of_shared_memory_that_is_not_written(program: Any) -> None:
    """In both blocks: what an earlier block wrote is nobody's."""
    kernel, _ = run(program, "unwritten", "16")
    assert kernel.unwritten_reads == 32
    assert kernel.first_fault() == (
        f"{place('reads what nobody wrote')}: thread (16,0,0) of block (0,0,0) reads shared memory (s) that no thread of the "
        "block has written"
    )


@pytest.mark.parametrize("order", [0, 3])
def test_first_fault_of_kernels_of_textbooks_is_none(textbook: Any, order: int) -> None:
    result = textbook.run(order=order)
    assert {name: fault for name, kernel in result.kernels.items() if (fault := kernel.first_fault())} == {}
    assert result.output == "1007 right, 0 wrong, no error"
