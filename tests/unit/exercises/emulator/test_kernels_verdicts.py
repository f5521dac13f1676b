"""Verdicts on barriers, shuffles, unwritten memory and launches; the counts of lines; and blocks that are not watched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import STUCK_S

SOURCE = Path(__file__).with_name("verdicts.cu")
LINES = SOURCE.read_text(encoding="utf-8").splitlines()
FIRST = "thread (0,0,0) of block (0,0,0)"


def place(comment: str) -> str:
    """Return the line that ends with this comment, as the emulator names it."""
    return f"verdicts.cu:{next(number for number, line in enumerate(LINES, 1) if line.endswith(f'// {comment}'))}"


@pytest.fixture(scope="module")
def program(build: Callable[..., Any]) -> Any:
    return build(SOURCE.read_text(encoding="utf-8"), name=SOURCE.name)


def list_faults(result: Any) -> list[str]:
    """Return the faults of all kernels in words."""
    assert result.code == 0
    return [fault.text for kernel in result.kernels.values() for fault in kernel.faults]


WRONG = {
    "meet_three_times 3": (
        f"{place('not all come three times')}: {FIRST} waits at a barrier that 1 of the block's 4 threads never reach, "
        "such as thread (3,0,0) of block (0,0,0)",
    ),
    "warp_sum 8": (
        f"{place('reads absent lanes')}: {FIRST} reads from lane 16 in a shuffle, and that lane takes no part: the value is "
        "undefined",
    ),
    "unwritten 16": (
        f"{place('reads what was given')}: thread (16,0,0) of block (0,0,0) reads global memory that no kernel and no copy has "
        "written",
    ),
    "two_faults": (
        f"{place('one line')}: {FIRST} writes 4 bytes at byte 16,384 of an allocation of 16,384 bytes",
        f"{place('another line')}: thread (1,0,0) of block (0,0,0) writes 4 bytes at byte 16,416 of an allocation of 16,384 "
        "bytes",
    ),
    "plain_grid": (
        f"{place('waits for the grid')}: {FIRST} waits for the whole grid, and its launch is not cooperative "
        "(cudaLaunchCooperativeKernel is)",
    ),
    "meet_in_part": (f"{place('one is missing')}: {FIRST} waits at a barrier for 33 arrivals, and 32 came",),
    "write_constant": (
        f"{place('writes the constant')}: {FIRST} writes 4 bytes of weight, but a kernel can only read constant memory",
    ),
    "use_heap": (f"{place('past its end')}: {FIRST} writes 4 bytes at byte 12 of the 12 bytes that malloc or new returned",),
    "free_twice": (f"{place('again')}: the host frees memory that was freed before",),
    "long_copy": (f"{place('too long')}: this copy writes 16,388 bytes at byte 0 of an allocation of 16,384 bytes",),
    "host_read": (f"{place('by the host')}: the host reads 4 bytes of the device's memory: copy them with cudaMemcpy",),
    "block 1025": (f"{place('too large')}: a launch with blocks of 1,025 threads does not run: a block has at most 1,024",),
    "shared": (
        f"{place('too much')}: a launch with 1,048,576 bytes of dynamic shared memory does not run: the limit is 49,152 "
        "(cudaFuncSetAttribute raises it)",
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_faults_of_each_line_are_named(program: Any, words: str) -> None:
    assert list_faults(program.run(*words.split())) == list(WRONG[words])


@pytest.mark.parametrize(
    "words",
    [
        "meet_three_times 4",
        "warp_sum 32",
        "half_warp_sum",
        "unwritten 32",
        "block 1024",
        "square 9",
        "add_doubles",
        "lock 1",
        "late_change",
        "lock_object 1",
        "lock_std 1",
        "hand_over 1",
        "early_reader 1",
        "chain",
        "chain_of_words",
        "wait_for_last 1",
        "meet 1",
        "grid 1",
        "copy_async 1",
    ],
)
def test_faults_of_right_kernels_are_none(program: Any, words: str) -> None:
    assert list_faults(program.run(*words.split())) == []


@pytest.mark.parametrize(
    ("words", "comment"),
    [
        ("lock 0", "holds the lock"),
        ("lock_object 0", "holds the object"),
        ("lock_std 0", "holds the object"),
        ("hand_over 0", "takes it over"),
        ("early_reader 0", "reads a sum"),
        ("chain_without_fence_before", "takes a sum"),
        ("wait_for_last 0", "takes from the last block"),
        ("meet 0", "reads what another block counted"),
        ("plain_meet", "reads what another block counted"),
        ("chain_without_fence_after", "takes a sum"),
        ("chain_of_plain_flags", "says that it has the sum"),
        ("grid 0", "reads another block's"),
        ("copy_async 0", "reads the copy"),
    ],
)
def test_races_without_a_fence_or_a_barrier_are_named(program: Any, words: str, comment: str) -> None:
    (kernel,) = program.run(*words.split()).kernels.values()
    assert any(fault.kind == "races" and place(comment) in fault.text for fault in kernel.faults)


def test_volatile_orders_nothing_in_shared_memory(program: Any) -> None:
    (fault,) = list_faults(program.run("hand_over_in_block"))
    words = "thread (1,0,0) of block (0,0,0) reads a value in shared memory (own) that thread (0,0,0)"
    assert fault.startswith(f"{place('reads what the first thread wrote')}: {words}")


def test_run_lets_blocks_wait_for_the_grid(program: Any) -> None:
    result = program.run("grid", "1")
    assert (result.output, result.kernels["turn"].threads) == ("36 no error", 64)


@pytest.mark.parametrize(("words", "output", "threads"), [("wait_for_last 1", "6", 128), ("meet 1", "34", 64)])
@pytest.mark.parametrize("order", [0, 3])
@pytest.mark.parametrize("every", [False, True])
def test_run_watches_blocks_that_wait_for_each_other(
    program: Any, words: str, output: str, threads: int, order: int, *, every: bool
) -> None:
    result = program.run(*words.split(), order=order, every=every)
    (kernel,) = result.kernels.values()
    assert (result.output, kernel.watched_threads) == (f"{output} no error", threads)


def test_run_names_the_line_of_a_loop_of_atomic_functions(emulator: Any, program: Any) -> None:
    with pytest.raises(emulator.Endless) as caught:
        program.run("spin", "32", limit_s=200, processor_limit_s=1)
    assert str(caught.value).startswith(f"{place('for ever')}: in kernel spin, thread (")


def test_run_gives_kernels_memory_of_the_device(program: Any) -> None:
    result = program.run("lists")
    assert (result.output, list_faults(result)) == ("31 no error", [])


@pytest.mark.parametrize(("word", "value"), [("take_zeros", 1), ("pair", 28 + 7 + 8), ("occupancy", 1024)])
def test_run_passes_literal_zeros_and_divides_groups_of_lanes(program: Any, word: str, value: int) -> None:
    result = program.run(word)
    assert (result.output, list_faults(result)) == (f"{value} no error", [])


def test_run_starts_the_launches_of_a_kernel(program: Any) -> None:
    result = program.run("parent")
    assert (result.output, result.kernels["child"].threads) == ("31 no error", 32)


def test_kernels_have_the_names_of_their_functions(program: Any) -> None:
    assert set(program.run("typed").kernels) == {"typed<float>", "typed<int>", "copy"}


def test_kernel_has_its_largest_launch_and_its_shared_memory(program: Any) -> None:
    kernel = program.run("square", "9").kernels["square"]
    assert (kernel.launched, kernel.grid, kernel.block) == (place("a large launch"), (64, 1, 1), (64, 1, 1))
    assert (kernel.static_bytes, kernel.dynamic_bytes) == (256, 0)


def test_lines_have_the_counts_of_each_kind_of_access(program: Any) -> None:
    lines = program.run("square", "9").kernels["square"].lines
    loads = {f"{item.file}:{item.line}": item.counts for item in lines if item.access == "global_load"}
    assert loads[place("a row")].requests == 128
    assert loads[place("a loop")].requests == 9 * 128
    assert {item.access for item in lines if f"{item.file}:{item.line}" == place("a row")} == {"global_load", "shared_store"}


def test_run_watches_a_sample_of_the_blocks_of_a_large_launch(build: Callable[..., Any]) -> None:
    """64 blocks of 64 threads with 4000 loads each: eight million accesses are 32.7 blocks; of the others none is a 64th."""
    program = build(
        """
__global__ void square(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += x[(i + k) % 4096];
  y[i] = sum;
}
int main() {
  float *x, *y;
  cudaMalloc(&x, 16384);
  cudaMalloc(&y, 16384);
  cudaMemset(x, 0, 16384);
  square<<<64, 64>>>(x, y, 4000);
}
""",
        every=False,
    )
    results = [program.run(limit_s=STUCK_S, every=every) for every in (False, False, True)]
    sample, again, whole = (result.kernels["square"] for result in results)
    assert sample == again
    assert (sample.threads, sample.watched_threads, whole.watched_threads) == (4096, 33 * 64, 4096)
    assert sample.global_load.requests == whole.global_load.requests * 33 // 64
