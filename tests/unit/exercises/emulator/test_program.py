"""What device functions give, which launches are refused and how, and programs that do not end well."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("execution.cu")
LINES = SOURCE.read_text(encoding="utf-8").splitlines()
FIRST = "thread (0,0,0) of block (0,0,0)"
RIGHT = sum(i % 7 for i in range(256))


def place(comment: str) -> str:
    """Return the line that ends with this comment, as the emulator names it."""
    return f"execution.cu:{next(number for number, line in enumerate(LINES, 1) if line.endswith(f'// {comment}'))}"


@pytest.fixture(scope="module")
def program(build: Callable[..., Any]) -> Any:
    return build(SOURCE.read_text(encoding="utf-8"), name=SOURCE.name)


def numbers(program: Any, name: str, order: int) -> list[int]:
    """Return what the kernel wrote."""
    result = program.run(name, order=order)
    *words, no, error = result.output.split()
    assert (no, error, result.first_fault()) == ("no", "error", None)
    return [int(word) for word in words]


def test_rand_and_random_return_the_numbers_of_the_c_library(build: Callable[..., Any]) -> None:
    take = 'for (int i = 0; i < 50; ++i) printf("%d ", rand()), printf("%ld ", random());'
    seeds = "srand(0);", "srandom(7);", "srand(-5);"
    output = build(f"int main() {{ {take} {' '.join(seed + take for seed in seeds)} }}").run().output
    library = ctypes.CDLL(None)
    expected = []
    for seed in (1, 0, 7, -5):  # without srand, as if the seed were 1
        library.srand(seed)
        expected += [library.rand() for _ in range(100)]
    assert [int(word) for word in output.split()] == expected


def test_rand_of_a_global_variable_returns_the_first_number(build: Callable[..., Any]) -> None:
    program = build('int first = rand();\nint main() { srand(1); printf("%d", first == rand()); }')
    assert program.run().output == "1"


def test_rand_of_the_program_itself_is_called(build: Callable[..., Any]) -> None:
    program = build('extern "C" int rand() noexcept { return 4; }\nint main() { printf("%d", rand()); }')
    assert program.run().output == "4"


@pytest.mark.slow
@pytest.mark.parametrize("order", [0, 3])
def test_run_of_shuffles_and_votes(program: Any, order: int) -> None:
    out = numbers(program, "exchange", order)
    for lane in range(32):
        assert out[12 * lane : 12 * lane + 12] == [
            50,
            lane + 3 if lane < 29 else lane,
            lane - 3 if lane >= 3 else lane,
            lane ^ 1,
            lane // 8 * 8 + 1,
            lane + 3 if lane % 8 < 5 else lane,
            0xAAAAAAAA - (1 << 32),
            1,
            0,
            int(15 * min(lane + 1, 31)),
            7 if lane % 2 else 6,
            1007,
        ]


@pytest.mark.parametrize("order", [0, 3])
def test_run_of_atomic_functions(program: Any, order: int) -> None:
    out = numbers(program, "atomics", order)
    assert out[:8] == [128, 127, -127, -1, 0x42800000, sum(range(128)), 128 % 10, 3]


def test_run_rounds_half_precision_as_ieee_says(program: Any) -> None:
    numbers = [0.1, -1.5, 2049, 2051, 65504, 65519.9, 6e-8, 2.9e-8, 6.1e-5, 1 / 3, 1000.25, 1000.75]
    words = program.run("halves", *map(str, numbers)).output.split()
    halves = [struct.unpack("<e", struct.pack("<e", number))[0] for number in numbers]
    assert [int(word) for word in words[::2]] == [struct.unpack("<H", struct.pack("<e", number))[0] for number in numbers]
    assert [float(word) for word in words[1::2]] == pytest.approx(
        [2 * half if half < 4e4 else math.inf for half in halves], rel=1e-8
    )


SHARED_HALVES = """
#include <cuda_fp16.h>
__global__ void turn(__half* x) {
  __shared__ __half tile[8192];
  for (int i = threadIdx.x; i < 8192; i += 32) tile[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < 8192; i += 32) x[i] = tile[8191 - i];
}
int main() {
  __half* x;
  cudaMallocManaged(&x, 8192 * sizeof *x);
  for (int i = 0; i < 8192; ++i) x[i] = i % 100;
  turn<<<1, 32>>>(x);
  cudaDeviceSynchronize();
  printf("%g %g", float(x[0]), float(x[8191]));
}
"""
VECTOR = """
#include <vector>
__global__ void publish(int* count) {
  __threadfence();
  atomicAdd(count, 1);
}
int main() {
  std::vector<unsigned> numbers;
  for (unsigned number = 0; number < 9; ++number) numbers.push_back(number);
  int* count;
  cudaMallocManaged(&count, sizeof *count);
  *count = numbers[8];
  publish<<<1, 32>>>(count);
  cudaDeviceSynchronize();
  printf("%d", *count);
}
"""


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (SHARED_HALVES, "91 0"),  # g++ guards a static array of objects
        (VECTOR, "40"),  # the emulator has such a vector as well
    ],
)
def test_run_finds_no_fault_in_what_the_compiler_adds(build: Callable[..., Any], text: str, output: str) -> None:
    result = build(text).run()
    assert (result.output, result.first_fault()) == (output, None)


def test_run_names_a_program_that_leaves_no_report(program: Any) -> None:
    result = program.run("quiet")
    assert result.first_fault() == "the program ended without a report: it calls _exit, or the disk is full"


def test_run_shows_a_missing_barrier_in_other_orders(program: Any) -> None:
    sums = [float(program.run("sum", "1", order=order).output) for order in range(4)]
    racy_results = [program.run("sum", "0", order=order) for order in range(4)]
    assert sums == [RIGHT] * 4
    assert len({result.output for result in racy_results}) > 1
    assert all(result.kernels["sum"].races for result in racy_results)


def test_run_ends_if_threads_wait_for_each_other(program: Any) -> None:
    result = program.run("wait_for_flag", "1")
    assert (result.output, result.first_fault()) == ("no error", None)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("threads 1024", "no error"),
        ("threads 1025", "invalid configuration argument"),
        ("blocks 0", "invalid configuration argument"),
        ("dynamic 49156", "invalid argument"),
        ("big 1", "out of memory"),
        ("twice 1", "invalid argument"),
        ("copies 4", "invalid argument"),
        ("set 1", "invalid argument"),
    ],
)
def test_run_has_the_errors_of_cuda(program: Any, words: str, error: str) -> None:
    assert program.run(*words.split()).output == error


def test_run_ends_a_kernel_by_a_failed_assert(program: Any) -> None:
    first, error = program.run("failing").output.splitlines()
    assert first.endswith("void failing(int*): block: [0,0,0], thread: [0,0,0] Assertion `*out == 1` failed.")
    assert error.endswith("device-side assert triggered")


def test_run_refuses_a_launch_of_thirty_million_blocks(program: Any) -> None:
    result = program.run("blocks", str(2**25))
    assert result.output == "too many resources requested for launch"
    assert result.kernels["nothing"].first_fault() == (
        f"{place('as many blocks as asked for')}: a launch of 33,554,432 blocks: the emulator runs at most 16,777,216, but "
        "a GPU runs more"
    )


def test_run_names_a_limit_that_it_did_not_set(emulator: Any, program: Any, tmp_path: Path) -> None:
    limited = tmp_path / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -St 1\nexec {program.path} "$@"\n')
    limited.chmod(0o755)
    with pytest.raises(emulator.Endless, match=r"did not end within the processor time that `ulimit -t` permits here$"):
        dataclasses.replace(program, path=limited).run("spin", limit_s=200)


@pytest.mark.parametrize("name", ["spin", pytest.param("whirl", marks=pytest.mark.slow)])
def test_run_ends_an_endless_kernel_and_names_its_line(emulator: Any, program: Any, name: str) -> None:
    with pytest.raises(emulator.Endless) as caught:
        program.run(name, limit_s=200, processor_limit_s=1)
    line = next(number for number, text in enumerate(LINES, 1) if f"void {name}(" in text)
    assert str(caught.value).startswith(f"execution.cu:{line}: in kernel {name}, thread (")
    assert str(caught.value).endswith("the program did not end within 1 s of processor time")


def test_run_ends_a_flood_of_output(emulator: Any, program: Any) -> None:
    with pytest.raises(emulator.TooMuchOutput, match="the program printed more than 1 MB and was ended"):
        program.run("chatter")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "divide 1",
            f"{place('divides')}: in kernel divide, {FIRST}: an integer was divided by zero (a GPU returns "
            "an undefined number and continues)",
        ),
        (
            "recurse 1",
            f"{place('calls itself')}: in kernel recurse, {FIRST}: stack overflow: too many local variables, "
            "or a function that calls itself without end",
        ),
        ("crash 1", f"{place('the host' + chr(39) + 's own')}: the program crashed (SIGSEGV)"),
    ],
)
def test_run_names_a_crash_with_its_line(program: Any, words: str, message: str) -> None:
    result = program.run(*words.split())
    assert result.crash == message
    assert result.code != 0
    assert result.first_fault() == message


def test_blocks_may_wait_for_later_blocks(build: Callable[..., Any]) -> None:
    text = """
__device__ unsigned arrived;
__global__ void pass(int* numbers, int rounds) {
  __shared__ int kept[32];
  kept[threadIdx.x] = blockIdx.x;
  for (int round = 0; round < rounds; ++round, numbers += gridDim.x) {
    __syncthreads();
    const int next = (kept[31 - threadIdx.x] + 1) % gridDim.x;
    if (threadIdx.x == 0) numbers[gridDim.x + blockIdx.x] = numbers[next] + 1;
    if (threadIdx.x != 0) continue;
    __threadfence();
    atomicAdd(&arrived, 1);
    while (atomicAdd(&arrived, 0) < (round + 1) * gridDim.x) {}
  }
}
int main() {
  int* numbers;
  cudaMallocManaged(&numbers, 20 * sizeof(int));
  for (int i = 0; i < 5; ++i) numbers[i] = i;
  pass<<<5, 32>>>(numbers, 3);
  cudaDeviceSynchronize();
  for (int i = 15; i < 20; ++i) printf("%d ", numbers[i]);
}
"""
    result = build(text).run()
    assert (result.output, result.first_fault()) == ("6 7 3 4 5 ", None)


def test_threads_of_the_host_run_one_after_the_other(build: Callable[..., Any]) -> None:
    text = """
#include <pthread.h>
#include <thread>
inline __device__ int step = 1;
__device__ int sum;
namespace kernels {
__global__ void add(int by) { atomicAdd(&sum, by * step); }
}
void* launch(void* number) {
  if (!number) return nullptr;
  else ::kernels::add<<<2, 32>>>(1);
  pthread_exit(number);
}
int main() {
  std::thread other([] { kernels::add<<<1, 32>>>(100); });
  pthread_t thread;
  void* result;
  int number = 7, total;
  pthread_create(&thread, nullptr, launch, &number);
  pthread_join(thread, &result);
  other.join();
  cudaMemcpyFromSymbol(&total, sum, sizeof total);
  printf("%d %d", total, *static_cast<int*>(result));
}
"""
    result = build(text).run()
    assert (result.output, result.code, result.first_fault()) == ("3264 7", 0, None)
