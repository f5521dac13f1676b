"""The command `cuda`: its tables, faults, documents and exit codes, with programs that really run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cuda_emulator import import_emulator
from tests.learning import Learning
from tests.parts import need_module

pytestmark = pytest.mark.system

TRANSPOSE = """#include <cstdio>
#include <cstdlib>
#ifndef PAD
#define PAD 0
#endif
__global__ void transpose(const float* in, float* out) {
  __shared__ float tile[32][32 + PAD];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void reverse(float* out, int size) {
  __shared__ float tile[64];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[size - 1 - threadIdx.x];
  if (threadIdx.x == 0) out[size] = 1;
}
__global__ void spin(volatile float* out) {
  while (out[0] == 0) {}
}
int main(int count, char** words) {
  const char way = count > 1 ? words[1][0] : ' ';
  float *in, *out;
  cudaMallocManaged(&in, 4096);
  cudaMallocManaged(&out, 4096);
  cudaMemset(in, 0, 4096);
  transpose<<<1, dim3(32, 32)>>>(in, out);
  if (way == 'f') {
    float* small;
    cudaMalloc(&small, 256);
    reverse<<<1, 64>>>(small, 64);
  }
  if (way == 's') spin<<<1, 1>>>(in);
  cudaDeviceSynchronize();
  printf("way %c, pad %d\\n", way, PAD);
  return way == 'x' ? 7 : 0;
}
"""


ADD = """import sys
import torch
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    tl.store(out + places, tl.load(x + places, mask=inside) + tl.load(y + places, mask=inside), mask=inside)

@triton.jit
def column(x, out, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    values = tl.load(x + places * n)
    tl.store(out + places, tl.load(x + places, mask=places < 8))
    tl.atomic_add(out + places, values)

way = sys.argv[1] if len(sys.argv) > 1 else ""
device = triton.runtime.driver.active.get_active_torch_device()
x, out = torch.ones(1024, device="cuda"), torch.zeros(1024).cuda().to(device)
time = triton.testing.do_bench(lambda: add[(4,)](x, x, out, 1024))
print("way", way, out.sum().item(), time)
if way == "fault":
    column[(1,)](x, out, 16, BLOCK=64)
    add[(5,)](x, x, out, 1025)
if way == "wrong":
    raise ValueError("no such way")
if way == "exit":
    sys.exit(7)
while way == "spin":
    pass
"""


@pytest.fixture
def program(learning: Learning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Learning:
    import_emulator()
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("my.cu").write_text(TRANSPOSE)
    Path("padded.cu").write_text(f"#define PAD 1\n{TRANSPOSE}")
    return learning


def test_cuda_shows_counts_and_faults_by_line_and_chooses_the_exit_code(program: Learning) -> None:
    result = program.types("cuda", "my.cu", "--lines")
    assert "1 kernel, no fault" in result.out
    assert "way  , pad 0" in result.out
    assert "transpose: 1 launch, 1,024 threads" in result.out
    row = next(line.split() for line in result.out.splitlines() if line.startswith("shared load"))
    assert row[2:5] == ["32", "–", "31"], "32 requests, no sectors, 31 conflicts"
    assert "      4        31    32   10    out[threadIdx.y * 32" in result.out
    faulty = program.types("cuda", "my.cu", "--", "f", code=5).out
    assert "2 kernels" in faulty
    assert "reverse, out of bounds: my.cu:16: thread (0,0,0) of block (0,0,0) writes 4 bytes at byte 256" in " ".join(
        faulty.split()
    )
    assert "reverse, race" in faulty, "the first fault does not hide the next"
    failed = program.types("cuda", "my.cu", "--", "x", code=4).out
    assert "It failed with exit code 7" in failed
    endless = program.types("cuda", "my.cu", "--limit", "1s", "--", "s", code=4).err
    assert "the program did not end within 1 s" in endless
    assert "--limit 5s" in endless
    (document,) = program.types("cuda", "my.cu", "--json", "--order", "all").document["programs"]
    assert document["file"] == "my.cu"
    assert document["report"]["orders"] == [0, 1, 2, 3]
    assert [kernel["name"] for kernel in document["report"]["kernels"]] == ["transpose"]


def test_cuda_compares_two_programs_and_writes_a_page(program: Learning) -> None:
    result = program.types("cuda", "my.cu", "padded.cu", "--compare", "--open", "--limit", "60s")
    row = next(line.split() for line in result.out.splitlines() if line.startswith("shared load: conflicts"))
    assert row[-2:] == ["31", "0"]
    assert "print different text" in result.out
    page = Path("my.cu.html").read_text()
    assert "32 lanes need 32 turns. If a row of this array were one element wider, they would need 1 turn." in page
    assert Path("padded.cu.html").is_file()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#include <mpi.h>\n", "my.cu:1: the program needs MPI (mpi.h)"),
        ("\n#include <GL/glew.h>\n", "my.cu:2: the program needs OpenGL (GL/glew.h)"),
        ("void other();\nint main() { other(); }\n", 'several translation units, and the emulator builds one: add #include "'),
        ("int main() { return number; }\n", "my.cu:1: error: 'number' was not declared"),
    ],
)
def test_cuda_of_a_program_that_cannot_be_built_is_refused_in_a_sentence(program: Learning, text: str, words: str) -> None:
    Path("my.cu").write_text(text)
    assert words in program.types("cuda", "my.cu", code=4).err.replace("\n", " ")


def test_cuda_with_watch_runs_a_program_now_and_on_each_save(program: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(_stop: object, files: tuple[Path, ...], **_options: object) -> Iterator[tuple[Path, ...]]:
        files[0].write_text("int main() { return number; }\n")
        yield files
        raise KeyboardInterrupt

    monkeypatch.setattr("gpucourse.learning.watch.wait_for_saves", save)
    result = program.types("watch", "my.cu")
    assert "      4        31    32   10    out[threadIdx.y * 32" in result.out
    assert "'number' was not declared" in result.err
    assert "→ change the program and save it" in result.err.splitlines()
    assert "--nodes and --set are for an exercise" in program.types("watch", "my.cu", "--nodes", "2", code=2).err


def test_watch_of_triton_kernels_without_triton_names_the_command_that_installs_it(
    learning: Learning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my.py").write_text("")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    error = learning.types("watch", str(tmp_path / "my.py"), code=3).err
    assert "a program with Triton kernels needs torch and triton" in error.replace("\n", " ")
    assert "pip install" in error


def test_cuda_without_a_compiler_names_the_command_that_installs_it(program: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "sudo apt-get install g++" in program.types("cuda", "my.cu", code=3).err


@pytest.fixture
def kernels(learning: Learning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Learning:
    need_module("triton", "make .venv/.kernels")
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(ADD)
    return learning


def test_cuda_shows_the_counts_and_the_faults_of_triton_kernels(kernels: Learning) -> None:
    result = kernels.types("cuda", "my.py", "--lines").out
    assert "1 kernel, no fault" in result
    assert "way  2048.0 nan" in result
    assert "triton.testing measures nothing without a GPU" in result
    assert "add: 1 launch, 512 threads, blocks of 128" in result
    assert next(line.split() for line in result.splitlines() if line.startswith("global load"))[2:5] == ["64", "4", "–"]
    assert "      4         –    32   11      tl.store(out + places" in result
    assert "the processor, where the interpreter runs" in result
    (document,) = kernels.types("cuda", "my.py", "--json", "--", "fault", code=5).document["programs"]
    assert [(fault["kernel"], fault["kind"], fault["line"]) for fault in document["report"]["faults"]] == [
        ("column", "undefined value", 17),
        ("add", "out of bounds", 11),
    ]
    column = document["report"]["kernels"][1]
    assert (column["atomics"], column["global_load"]["requests"]) == (64, 3)
    assert [line["counts"]["sectors"] for line in column["lines"] if line["line"] == 16] == [64], "a sector for each lane"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--", "wrong"], "It failed: my.py:29: ValueError: no such way"),
        (["--", "exit"], "It failed with exit code 7"),
        (["--limit", "1s", "--", "spin"], "the program did not end within 1 s"),
    ],
)
def test_cuda_says_why_a_program_with_triton_kernels_failed(kernels: Learning, arguments: list[str], words: str) -> None:
    result = kernels.types("cuda", "my.py", *arguments, code=4)
    assert words in result.out + result.err
