"""Blocks that are not watched run in a build without hooks: the same memory, locks that end, and faults with their lines."""

from __future__ import annotations

import importlib
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("unwatched.cu")
LINES = SOURCE.read_text(encoding="utf-8").splitlines()
BLOCKS, THREADS = 130, 64
WATCHED = 3 * THREADS  # blocks 0, 64 and 128

only_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the second build is for x86-64")


def place(comment: str) -> str:
    """Return the line that ends with this comment, as the emulator names it."""
    return f"unwatched.cu:{next(number for number, line in enumerate(LINES, 1) if line.endswith(f'// {comment}'))}"


@pytest.fixture(scope="module")
def program(build: Callable[..., Any]) -> Any:
    return build(SOURCE.read_text(encoding="utf-8"), name=SOURCE.name, every=False)


@only_x86
def test_build_has_each_kernel_without_hooks(program: Any) -> None:
    assert b"_Z6valuesPf.unwatched" in program.path.read_bytes()


def test_build_of_a_program_that_watches_every_block_has_no_other_kernels(build: Callable[..., Any]) -> None:
    program = build("__global__ void one(int* x) { *x = 1; }\nint main() { one<<<1, 1>>>(nullptr); }\n")
    assert b".unwatched" not in program.path.read_bytes()


@pytest.mark.parametrize("order", [0, 3])
def test_run_of_a_sample_of_blocks_leaves_the_same_memory(program: Any, order: int) -> None:
    sample, whole = (program.run("values", order=order, every=every) for every in (False, True))
    assert sample.kernels["values"].watched_threads < whole.kernels["values"].watched_threads == BLOCKS * THREADS
    assert (sample.output, sample.first_fault()) == (whole.output, None)
    assert sample.output.split()[0] == str(BLOCKS * THREADS)


def test_run_counts_the_accesses_of_the_watched_blocks(program: Any) -> None:
    kernel = program.run("values").kernels["values"]
    line = next(item for item in kernel.lines if f"unwatched.cu:{item.line}" == place("a store"))
    assert (kernel.launches, kernel.threads, kernel.watched_threads) == (1, BLOCKS * THREADS, WATCHED)
    assert (line.counts.requests, line.counts.sectors, kernel.atomics) == (WATCHED // 32, WATCHED // 8, WATCHED)


def test_run_keeps_long_doubles_of_threads_that_take_turns(program: Any) -> None:
    sample, whole = (program.run("long_doubles", every=every) for every in (False, True))
    assert sample.kernels["long_doubles"].watched_threads == WATCHED
    assert sample.output == whole.output


@pytest.mark.parametrize("order", [0, 1])
def test_run_ends_if_threads_of_an_unwatched_block_wait_for_each_other(program: Any, order: int) -> None:
    assert program.run("lock_and_flag", order=order).output.split()[0] == str(BLOCKS * THREADS)


@pytest.mark.slow  # on a busy computer, block 0 alone may take seconds
def test_run_names_the_line_of_an_endless_loop_of_an_unwatched_block(emulator: Any, program: Any) -> None:
    with pytest.raises(emulator.Endless) as caught:
        program.run("endless", limit_s=12)
    assert str(caught.value).startswith(f"{place('waits')}: in kernel endless, thread (")
    assert "of block (3,0,0)" in str(caught.value)


def test_run_names_the_line_of_a_crash_of_an_unwatched_block(program: Any) -> None:
    crash = program.run("null").crash
    assert crash == f"{place('writes')}: in kernel null, thread (0,0,0) of block (3,0,0): the program crashed (SIGSEGV)"


def test_run_names_the_line_of_a_barrier_of_an_unwatched_block(program: Any) -> None:
    fault = program.run("part").kernels["part"].diverged
    assert fault.startswith(f"{place('not all')}: thread (0,0,0) of block (3,0,0) waits at a barrier that 24 of")


@pytest.mark.parametrize(
    ("comparison", "is_counted"),
    [
        ("\tcmpl\t%eax, %ebx", True),
        ("\tlock cmpxchgl\t%ecx, (%rdx)", True),
        ("\tfcomi\t%st(1), %st", True),
        ("\tmovl\t%eax, %ebx", False),
        ("\tfcmovbe\t%st(1), %st\n\tcmpl\t%eax, %ebx", False),
    ],
)
def test_share_counts_no_rounds_if_the_loop_begins_with_a_comparison_of_the_last_round(
    emulator: Any, comparison: str, is_counted: bool
) -> None:
    assembly = importlib.import_module(f"{emulator.__name__}.assembly")
    loop = f".L2:\n{comparison}\n\tje\t.L3\n\tcmpl\t$1, (%rax)\n\tjne\t.L2\n.L3:\n\tret\n"
    _, unwatched = assembly.share("", loop)
    assert ("emulator_yield" in unwatched) is is_counted


@pytest.mark.parametrize("hook", ["__tsan_read4", "__tsan_unaligned_write8"])
def test_finish_calls_a_hook_only_for_an_address_that_it_must_see(emulator: Any, hook: str) -> None:
    assembly = importlib.import_module(f"{emulator.__name__}.assembly")
    text = assembly.finish(f"\tcall\t{hook}\n\tret\n")
    assert re.search(rf"\tcmpq\temulator_seen\+8\(%rip\), %rax\n\tja\t1f\n\tcall\t{hook}\n1:\n\tret\n", text)


@pytest.mark.parametrize(("watched", "count"), [(0, 1), (32, 0)])
def test_report_has_a_note_for_a_kernel_that_was_not_watched(emulator: Any, watched: int, count: int) -> None:
    command = importlib.import_module("emulator.__main__")
    kernel = emulator.Kernel("spin", threads=64, watched_threads=watched)
    notes = command._make_report({0: emulator.Result(0, "", {"spin": kernel}, 0.1)}, [])["notes"]
    assert sum("no thread of spin was watched" in note for note in notes) == count


@pytest.mark.slow
def test_run_of_a_block_with_very_many_accesses_watches_the_first_ones(build: Callable[..., Any]) -> None:
    """The last access that is watched is the read before a loop around atomicCAS, which is no race."""
    text = """
      __global__ void add(unsigned* sum, volatile unsigned* other, int reads) {
        if (threadIdx.x < 32) {
          atomicAdd(sum, 1);
          return;
        }
        for (int i = 0; i < reads; ++i) *other;
        unsigned old = *sum, expected;
        do {
          expected = old;
          old = atomicCAS(sum, expected, expected + 1);
        } while (old != expected);
      }
      int main() {
        unsigned* memory;
        cudaMallocManaged(&memory, 8);
        memory[0] = memory[1] = 0;
        add<<<1, 33>>>(memory, memory + 1, (1 << 25) - 1);
        cudaDeviceSynchronize();
        printf("%u", *memory);
      }
    """
    result = build(text, every=False).run()
    kernel = result.kernels["add"]
    assert (result.output, result.first_fault()) == ("33", None)
    assert (kernel.threads, kernel.watched_threads, kernel.atomics, kernel.global_load.requests) == (33, 0, 32, 1 << 25)
