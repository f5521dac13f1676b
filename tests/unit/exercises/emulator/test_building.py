"""Files that cannot be built, each with the learner's own line; and what is kept of what was built."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

KERNEL = """\
#include <cuda_runtime.h>
__global__ void add(float* x) { x[threadIdx.x] += 1; }
int main() { float* x; cudaMalloc(&x, 128); cudaMemset(x, 0, 128); add<<<1, 32>>>(x); }
"""


@pytest.fixture
def building(emulator: Any) -> Any:
    return sys.modules[emulator.build.__module__]


def error_of(emulator: Any, build: Callable[..., Any], text: str) -> Any:
    with pytest.raises(emulator.CompileError) as caught:
        build(text, name="my_kernels.cu")
    assert len(caught.value.text.splitlines()) <= 5
    assert str(Path(emulator.__file__).parent) not in caught.value.text
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (KERNEL.replace("x[threadIdx.x]", "y[threadIdx.x]"), 2, "'y' was not declared in this scope"),
        (KERNEL.replace("add<<<1, 32>>>", "add<<<1>>>"), 3, "too few arguments to function|no matching function"),
        ("#include <no_such_header.h>\n" + KERNEL, 1, "no_such_header.h: No such file or directory"),
        (
            KERNEL + '\n__device__ void stop() { asm volatile("wgmma.fence.sync;"); }\n',
            KERNEL.count("\n") + 2,
            "the emulator does not have the PTX wgmma.fence.sync: use mma.sync or WMMA, or run the program on a lab with a GPU",
        ),
        (
            "int main() { CUresult error = cuInit(0); }\n",
            1,
            "the emulator does not have CUresult: use the functions of cuda_runtime.h",
        ),
        ("int n = cufftXtSetGPUs(1);\n" + KERNEL, 1, "the emulator does not have cufftXtSetGPUs: use the plans"),
        (
            "struct Pair { int a, b; };\n__global__ void add(Pair pair) {}\nint main() { add<<<1, 1>>>({1, 2}); }\n",
            3,
            "the emulator does not have an argument in braces without its type: write the type before them",
        ),
        ("cudaGraphicsResource* picture;\n" + KERNEL, 1, "the emulator does not have cudaGraphicsResource: write the picture"),
        ("#include <thrust/no_such.h>\n" + KERNEL, 1, "the emulator does not have thrust/no_such.h: write a loop"),
        ("#include <cusparseLt.h>\n" + KERNEL, 1, "the emulator does not have cuSPARSELt: write the kernel"),
        (
            "#include <cusparse.h>\nint n = cusparseXcsrsort(1);\n" + KERNEL,
            2,
            "cusparseXcsrsort: use SpMV and SpMM of cusparse.h",
        ),
        ("#include <cusolverDn.h>\n" + KERNEL, 1, "the emulator does not have cuSOLVER: factor the matrix by loops"),
        (
            "#include <cuda_runtime.h>\n__global__ void gone(float*);\nint main() {\n  gone<<<1, 1>>>((float*)0);\n}\n",
            4,
            "undefined reference to `gone",
        ),
        (
            "#include <cuda_runtime.h>\n"
            "namespace mine {\n"
            "template <int T> __global__ void __launch_bounds__(T, (1)) tiled(float* x) {\n"
            "  __shared__ float a[T][T], b[T][T];\n"
            "  a[threadIdx.x][0] = x[0];\n"
            "  b[threadIdx.x][0] = x[1];\n"
            "  __syncthreads();\n"
            "  x[0] = a[0][0] + b[1][0];\n"
            "}\n"
            "}\n"
            "int main() { mine::tiled<16><<<1, 32>>>((float*)0); mine::tiled<96><<<1, 32>>>((float*)0); }\n",
            3,
            "tiled has 73,728 bytes of shared memory, but nvcc permits at most 49,152",
        ),
    ],
)
def test_build_names_the_line_of_the_learner(
    emulator: Any, build: Callable[..., Any], text: str, line: int, message: str
) -> None:
    error = error_of(emulator, build, text)
    assert (error.file, error.line) == ("my_kernels.cu", line), error.text
    assert "headers/" not in error.text
    assert re.search(message, error.message), error.message


@pytest.mark.slow  # it builds the emulator's object anew
def test_build_waits_for_the_emulator_if_the_kernels_have_an_error(
    emulator: Any, build: Callable[..., Any], tmp_path: Path
) -> None:
    large = KERNEL.replace("{ x[", "{ __shared__ float large[16384]; large[0] = x[0]; x[0] = large[1]; x[", 1)
    with pytest.raises(emulator.CompileError, match="bytes of shared memory"):
        build(large, cache=tmp_path)
    assert len(list(tmp_path.glob("emulator-*.o"))) == 1


def test_build_takes_comments_in_other_encodings_but_no_binary(emulator: Any, cache: Path, tmp_path: Path) -> None:
    source = tmp_path / "my_kernels.cu"
    source.write_bytes(b"// f\xfcr Latin-1\n" + KERNEL.encode())
    assert emulator.build([source], folder=tmp_path, cache=cache).run().first_fault() is None
    source.write_bytes(b"// first\n// \x00\n" + KERNEL.encode())
    with pytest.raises(emulator.CompileError, match=r"my_kernels\.cu:2: this is not text: save") as caught:
        emulator.build([source], folder=tmp_path)
    assert caught.value.line == 2


def test_build_takes_an_alignment_of_shared_memory_and_keeps_the_lines(build: Callable[..., Any]) -> None:
    program = build(
        "__global__ void fill(int* x) {\n"
        "  extern __shared__ __align__(sizeof(double)) unsigned char bytes[];\n"
        "  bytes[0] = 1;\n"
        "  x[bytes[0]] = 1;\n"
        "}\n"
        "int main() { int* x; cudaMalloc(&x, 4); fill<<<1, 1, 8>>>(x); }\n",
        name="my_kernels.cu",
    )
    assert "my_kernels.cu:4: " in program.run().first_fault()


def test_build_takes_qualifiers_in_any_order_and_variables_of_the_device(build: Callable[..., Any]) -> None:
    program = build(r"""
#include <cuda_runtime.h>
#if __has_include(<nvml.h>)
#error the emulator does not have it
#endif
#define BOTH __host__ __device__
#define LAUNCH(NAME, SUFFIX) NAME##SUFFIX << < 1, 32 >> >
static __device__ int counter = 5;
__device__ __constant__ float weights[(4 - 2)] = {1.5f, 2};
const __device__ int table[3] = {1, 2, 3};
__managed__ int shown;
struct __align__(16) Pair { float a, b; BOTH float sum() const { return a + b; } };
BOTH __forceinline__ int twice(int x) { return 2 * x; }
__global__ void __launch_bounds__(32, 1) k_one(Pair pair) {
  static __shared__ __align__(16) float a[32];
  extern float __shared__ dynamic[];
  volatile __shared__ int last;
  a[threadIdx.x] = pair.sum() * weights[1];
  __syncthreads();
  if (threadIdx.x) return;
  last = table[2];
  shown = twice(int(a[31])) + last;
  counter += shown;
}
int main() {
  LAUNCH(k_, one)(Pair{1, 2});
  printf("%d %d", shown, counter);
}
""")
    result = program.run()
    assert (result.output, result.first_fault()) == ("15 20", None)


def test_build_takes_launches_as_people_write_them(build: Callable[..., Any]) -> None:
    """Over several lines, in comments and strings, with templates, with a stream, and of a template that finds its own type."""
    program = build(r"""
#include <cuda_runtime.h>
// k<<<1, 1>>>(x) in a comment
namespace mine { __global__ void k(int* x) { atomicAdd(x, 1); } }
template <int A, class T> __global__ void t(T* x) { atomicAdd(x, A); }
template <class T> __global__ void deduced(T* x, T by = 100) { atomicAdd(x, by); }
int main() {
  int *x, r = 0;
  cudaMalloc(&x, sizeof(int));
  cudaMemset(x, 0, sizeof(int));
  const char* text = "k<<<1, 1>>>(x) /* in a string";
  mine::k<<<1, 1>>>(x);
  mine::k
      <<<dim3(1),
         dim3(1, 1)>>>(x);
  t<(3 > 2) ? 10 : 5, int><<<1, 1, 0, 0>>>(x);
  void (*names[])(int*) = {mine::k, mine::k};
  names[1]<<<1, 1>>>(x);
  (*names[0])<<<1, 1>>>(x);
  if (r < 8 << 2 && r >> 1 < 3) deduced<<<1, 1>>>(x, 100);
  cudaMemcpy(&r, x, sizeof r, cudaMemcpyDeviceToHost);
  printf("%d %s", r, text);
}
""")
    result = program.run()
    assert result.output == "114 k<<<1, 1>>>(x) /* in a string"
    assert sorted(result.kernels) == ["deduced<int>", "mine::k", "t<10, int>"]


def test_build_of_a_harness_takes_the_file_that_is_named(emulator: Any, cache: Path, tmp_path: Path) -> None:
    """Do not take the file of the same name beside it."""
    course, learner_folder = tmp_path / "course", tmp_path / "mine"
    course.mkdir()
    learner_folder.mkdir()
    (course / "harness.cu").write_text('#include "my_kernels.cu"\n#include "given.cuh"\nint main() { k<<<1, GIVEN>>>(T); }\n')
    (course / "given.cuh").write_text("#define GIVEN 7\n")
    (course / "my_kernels.cu").write_text("#error the file of the course\n")
    (learner_folder / "my_kernels.cu").write_text('#include <cuda_runtime.h>\n__global__ void k(int t) { printf("%d ", t); }\n')
    program = emulator.build(
        [course / "harness.cu", learner_folder / "my_kernels.cu"], folder=tmp_path / "build", cache=cache, defines={"T": 16}
    )
    assert program.run().output == "16 " * 7


def test_build_takes_a_program_from_the_cache(
    emulator: Any, building: Any, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "k.cu"
    source.write_text(KERNEL.replace("+= 1", "+= N"))
    first = emulator.build([source], folder=tmp_path / "build", cache=cache, defines={"N": 2})
    variant = emulator.build([source], folder=tmp_path / "build", cache=cache, defines={"N": 1})
    assert first.path != variant.path
    monkeypatch.setattr(building, "_compile", lambda *_: pytest.fail("it was compiled again"))
    assert emulator.build([source], folder=tmp_path / "build", cache=cache, defines={"N": 2}) == first
    assert list((tmp_path / "build").iterdir()) == []


def test_choose_store_takes_no_folder_that_others_may_write(
    building: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the user's own cache folder, but that of the build, if it cannot be written or others may write there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    user_store, folder = tmp_path / "gpucourse" / "emulator", tmp_path / "build"
    assert building._choose_store(None, folder) == user_store
    user_store.chmod(0o777)
    assert building._choose_store(None, folder) == folder
    (tmp_path / "file").write_text("no folder")
    assert building._choose_store(tmp_path / "file" / "cache", folder) == folder


def test_choose_store_on_a_node_is_below_the_cache_of_the_lab(
    building: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("GPUCOURSE_CACHE", str(tmp_path / "lab"))
    assert building._choose_store(None, tmp_path / "build") == tmp_path / "lab" / "emulator"
    assert not (tmp_path / "mine").exists()


@pytest.mark.slow  # each builds the emulator's object anew
def test_build_of_the_same_file_twice_at_once(emulator: Any, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(KERNEL)
    launched: list[int] = []

    def build() -> None:
        program = emulator.build([source], folder=tmp_path / "build", cache=tmp_path / "cache")
        launched.append(program.run().kernels["add"].threads)

    threads = [threading.Thread(target=build) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert launched == [32, 32]
    assert not [path for path in (tmp_path / "cache").iterdir() if path.name.startswith(".")]


def test_build_says_why_a_computer_cannot(emulator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each says what to do."""
    source = tmp_path / "k.cu"
    source.write_text(KERNEL)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert emulator.find_compiler() is None
    with pytest.raises(emulator.Unsupported, match=r"needs g\+\+, which is not installed: sudo apt-get install g\+\+"):
        emulator.build([source], folder=tmp_path)
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(
        emulator.Unsupported, match=r"needs Linux, and this is Darwin: .*--target hosts.*--target here.*--target aws"
    ):
        emulator.build([source], folder=tmp_path)


def test_build_ends_a_compiler_that_takes_too_long(building: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "g++"
    compiler.write_text("#!/bin/sh\nexec sleep 600\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(building, "COMPILE_S", 0.05)
    with (
        building._Emulator(str(compiler), tmp_path, tmp_path) as made,
        pytest.raises(building.UnsupportedMachine, match=r"did not compile the CUDA emulator within 0.05 s: type the command"),
    ):
        made.wait()


def test_build_takes_headers_that_name_cudas_noinline(build: Callable[..., Any]) -> None:
    """The headers of g++ 13 name the attribute as CUDA names its macro, alone and among others."""
    text = KERNEL.replace(
        "__global__",
        "#include <memory>\n"
        "__attribute__((__noinline__, __cold__)) inline int library() { return 1; }\n"
        "__device__ __noinline__ float mine(float x) { return x + library(); }\n"
        "__global__",
    )
    build(text)
