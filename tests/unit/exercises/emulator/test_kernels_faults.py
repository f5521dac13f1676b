"""Every fault that the emulator reports, by a kernel with the fault and one without: who, where, in which line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("faults.cu")
LINES = SOURCE.read_text(encoding="utf-8").splitlines()
FIRST = "thread (0,0,0) of block (0,0,0)"
ILLEGAL_ACCESS = "an illegal memory access was encountered"


def place(comment: str) -> str:
    """Return the line that ends with this comment, as the emulator names it."""
    return f"faults.cu:{next(number for number, line in enumerate(LINES, 1) if line.endswith(f'// {comment}'))}"


@pytest.fixture(scope="module")
def program(build: Callable[..., Any]) -> Any:
    return build(SOURCE.read_text(encoding="utf-8"), name=SOURCE.name)


@pytest.fixture(scope="module")
def textbook(build: Callable[..., Any]) -> Any:
    return build(SOURCE.with_name("repertoire.cu").read_text(encoding="utf-8"))


def run(program: Any, *words: str) -> tuple[Any, str]:
    """Return the kernel that ran, and what CUDA would say."""
    result = program.run(*words)
    (kernel,) = result.kernels.values()
    assert result.code == 0
    return kernel, result.output


RIGHT = (
    "guard", "before 1", "dynamic 0", "fixed_size 0", "wild 0", "freed 0", "globals 0", "null 0", "host 0", "far 0", "pairs 0",
    "warps 2", "lanes 1", "lanes 2", "blocks 1", "one_block 1", "last_block 1",
    "early_return 64", "two_barriers 64", "warp_and_block 32", "masks 0xaaaaaaaa 0x55555555", "two_shuffles 32", "unwritten 32",
)  # fmt: skip
WRONG = {  # how often, the comment of the line, and what its thread does
    "no_guard": (
        32, "reads past the end", "thread (0,0,0) of block (2,0,0) reads 4 bytes at byte 256 of an allocation of 256 bytes",
    ),
    "before 0": (
        1, "writes before the beginning", f"{FIRST} writes 4 bytes 4 bytes before an allocation of 256 bytes",
    ),
    "dynamic 1": (
        1, "writes past the dynamic memory",
        "thread (31,0,0) of block (0,0,0) writes 4 bytes at byte 128 of the 128 bytes of dynamic shared memory",
    ),
    "fixed_size 32": (
        32, "writes past an array", f"{FIRST} writes 4 bytes at byte 128 of the 128 bytes of first in shared memory",
    ),
    "wild 1": (1, "writes far away", f"{FIRST} writes 1 bytes outside of the block's shared memory"),
    "freed 1": (32, "reads what was given", f"{FIRST} reads 4 bytes of memory that was freed by cudaFree"),
    "unwritten 16": (
        32, "reads what nobody wrote",
        "thread (16,0,0) of block (0,0,0) reads shared memory (s) that no thread of the block has written",
    ),
}  # fmt: skip
ILLEGAL = {  # the comment of the line, what the first thread does there, and what CUDA says
    "null 1": ("reads what was given", "reads 4 bytes through a null pointer", ILLEGAL_ACCESS),
    "host 1": (
        "reads what was given", "reads 4 bytes of the host's memory: a kernel sees only what cudaMalloc allocated",
        ILLEGAL_ACCESS,
    ),
    "last_address 1": (
        "reads before a null pointer", "reads 1 bytes of the host's memory: a kernel sees only what cudaMalloc allocated",
        ILLEGAL_ACCESS,
    ),
    "far 1": ("reads what was given", "reads 4 bytes far from everything that cudaMalloc allocated", ILLEGAL_ACCESS),
    "globals 1": (
        "reads a variable of the host",
        "reads the host's variable of_host: pass it to the kernel as an argument (nvcc refuses this)", ILLEGAL_ACCESS,
    ),
    "pairs 1": (
        "reads two floats", "reads 8 bytes at an address that is not a multiple of 8 (misaligned address)",
        "misaligned address",
    ),
}  # fmt: skip
DIVERGED = {  # the comment of the line of the first thread, what it does, and the comment of the line of the other
    "early_return 40": (
        "not all come",
        "waits at a barrier that 24 of the block's 64 threads never reach, such as thread (40,0,0) of block (0,0,0)", "",
    ),
    "two_barriers 8": (
        "some here", "waits at a barrier, and thread (8,0,0) of block (0,0,0) at another one ({})", "others here",
    ),
    "two_shuffles 8": (
        "some shuffle here", "waits at a barrier, and thread (8,0,0) of block (0,0,0) at another one ({})",
        "others shuffle here",
    ),
    "warp_and_block 8": (
        "waits for its warp",
        "waits at a barrier of its warp, and thread (8,0,0) of block (0,0,0) at __syncthreads() ({})", "waits for its block",
    ),
    "masks 0xaaaaaaab 0x55555557": (
        "waits with another",
        "waits at a barrier of its warp, and its mask names thread (1,0,0) of block (0,0,0), which waits with another one ({})",
        "waits with one mask",
    ),
    "masks 0xaaaaaaaa 0x10": (
        "waits with another", "calls a function of its warp with a mask that leaves itself out", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", RIGHT)
def test_first_fault_of_a_right_kernel_is_none(program: Any, words: str) -> None:
    kernel, output = run(program, *words.split())
    assert (kernel.first_fault(), output) == (None, "no error")


@pytest.mark.parametrize("words", WRONG)
def test_first_fault_names_the_thread_and_the_line(program: Any, words: str) -> None:
    count, comment, sentence = WRONG[words]
    kernel, output = run(program, *words.split())
    assert kernel.first_fault() == f"{place(comment)}: {sentence}"
    assert (kernel.out_of_bounds or kernel.used_after_free or kernel.unwritten_reads, output) == (count, "no error")


@pytest.mark.parametrize("words", ILLEGAL)
def test_first_fault_names_an_illegal_address_that_ends_the_kernel(program: Any, words: str) -> None:
    comment, message, error = ILLEGAL[words]
    kernel, output = run(program, *words.split())
    assert kernel.first_fault() == f"{place(comment)}: {FIRST} {message}"
    assert (kernel.illegal_address, output) == (1, error)


@pytest.mark.parametrize("words", DIVERGED)
def test_diverged_names_a_barrier_that_some_never_reach(program: Any, words: str) -> None:
    comment, sentence, second_comment = DIVERGED[words]
    kernel, _ = run(program, *words.split())
    assert kernel.barrier_divergence >= 1
    assert kernel.diverged == f"{place(comment)}: {FIRST} {sentence.format(place(second_comment) if second_comment else '')}"


@pytest.mark.parametrize("words", ["warps 0", "warps 1", "lanes 0", "lanes 3"])
def test_race_in_shared_memory_names_both_threads(program: Any, words: str) -> None:
    """Between warps __syncwarp() is not enough; within a warp a shuffle orders no memory."""
    kernel, _ = run(program, *words.split())
    size = 64 if words.startswith("warps") else 32
    reader, writer = place("reads another's place"), place("writes a place")
    assert kernel.races >= size / 2
    assert kernel.first_fault() in {
        f"{line}: thread ({me},0,0) of block (0,0,0) {kind} a value in shared memory (s) that thread "
        f"({size - 1 - me},0,0) of block (0,0,0) {peer_kind} ({other_line}), and no barrier is between them"
        for line, kind, peer_kind, other_line in ((reader, "reads", "writes", writer), (writer, "writes", "reads", reader))
        for me in range(size)
    }


def test_race_between_blocks_names_both(program: Any) -> None:
    kernel, _ = run(program, "blocks", "0")
    line = place("no atomic")
    assert kernel.race == (
        f"{line}: thread (0,0,0) of block (1,0,0) reads a value in global memory that {FIRST} writes "
        f"({line}), and blocks run in any order, so only atomic functions may do that"
    )


def test_race_in_global_memory_within_a_block(program: Any) -> None:
    kernel, _ = run(program, "one_block", "0")
    assert kernel.races
    assert kernel.race.startswith(f"{place('no atomic')}: thread (1,0,0) of block (0,0,0)")


def test_race_of_a_last_block_without_a_fence(program: Any) -> None:
    kernel, _ = run(program, "last_block", "0")
    reader = place("reads other blocks' parts")
    assert kernel.race.startswith(f"{reader}: thread (0,0,0) of block (3,0,0) reads a value in global memory")


@pytest.mark.parametrize("order", [0, 3])
def test_first_fault_of_kernels_of_textbooks_is_none(textbook: Any, order: int) -> None:
    result = textbook.run(order=order)
    assert {name: fault for name, kernel in result.kernels.items() if (fault := kernel.first_fault())} == {}
    assert result.output == "6 right, 0 wrong, no error"


def test_run_gives_the_values_of_the_device_language(build: Callable[..., Any]) -> None:
    """Half-precision numbers, integers, old warp functions, cuda::barrier, PTX, textures and surfaces."""
    result = build(SOURCE.with_name("device_language.cu").read_text(encoding="utf-8")).run(order=2)
    assert {name: fault for name, kernel in result.kernels.items() if (fault := kernel.first_fault())} == {}
    assert result.output == "52 right, 0 wrong, no error"


def test_run_gives_the_products_and_conflicts_of_tensor_cores(build: Callable[..., Any]) -> None:
    """mma of six kinds of numbers, WMMA of four, ldmatrix, stmatrix, fp8. Rows of 32 bytes collide in banks, of 48 not."""
    result = build(SOURCE.with_name("tiles.cu").read_text(encoding="utf-8")).run()
    assert (result.output, result.first_fault()) == ("16 right, 0 wrong", None)
    dense, padded = result.kernels["transpose<16>"], result.kernels["transpose<24>"]
    assert (dense.shared_load.bank_conflicts, dense.shared_store.bank_conflicts) == (7, 4)
    assert (padded.shared_load.bank_conflicts, padded.shared_store.bank_conflicts) == (0, 0)
