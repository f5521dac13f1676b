"""The bytes of operations, and the addresses that a kernel loads and stores."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.parts import need_module
from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def np() -> ModuleType:
    return need_module("numpy")


@pytest.fixture(scope="module")
def memory(torch: ModuleType, np: ModuleType) -> ModuleType:
    return beside_the_script("shared", "kernel_memory")


def test_operations_count_bytes_and_leave_views_out(memory: ModuleType, torch: ModuleType) -> None:
    with memory.Operations() as operations:
        torch.zeros(4, 8).mT @ torch.ones(4, 2)
    assert operations.rows == [
        {"what": "zeros", "read_bytes": 0, "written_bytes": 128},
        {"what": "ones", "read_bytes": 0, "written_bytes": 32},
        {"what": "mm", "read_bytes": 160, "written_bytes": 64},
    ]


def launch_on(memory: ModuleType, tensor: Any, program: tuple[int, int, int]) -> Any:
    """Return a KernelMemory as in a launch of a kernel with one parameter, `x_ptr`, while that program runs."""
    watched = memory.KernelMemory()
    watched._builder = SimpleNamespace(grid_idx=program, grid_dim=(4, 1, 1))
    watched._learn_tensors(["x_ptr", "n"], tensor, 10)
    return watched


def test_kernel_memory_names_an_address_outside_by_its_number(memory: ModuleType, torch: ModuleType, np: ModuleType) -> None:
    tensor = torch.zeros(10)
    watched = launch_on(memory, tensor, (2, 0, 0))
    pointers = SimpleNamespace(data=np.array([tensor.data_ptr() + 4 * 10], dtype=np.uint64), attr={})
    with pytest.raises(
        memory.OutsideTensors, match=r"\.py:\d+: program \(2, 0, 0\) loads number 10 of x_ptr, which has the numbers 0 to 9"
    ):
        watched._share_out(pointers, np.array([True]), watched._note_load, "loads")


def test_kernel_memory_names_two_programs_that_store_the_same_number(
    memory: ModuleType, torch: ModuleType, np: ModuleType
) -> None:
    watched = launch_on(memory, torch.zeros(10), (0, 0, 0))
    (traffic,) = watched._now
    watched._note_store(traffic, np.array([3, 4]), lanes=np.array([0, 1]))
    watched._note_store(traffic, np.array([4]), lanes=np.array([1]))  # the same lane may
    watched._builder.grid_idx = (1, 0, 0)
    with pytest.raises(memory.StoredTwice, match=r"program \(1, 0, 0\) stores number 4 of x_ptr"):
        watched._note_store(traffic, np.array([4, 5]), lanes=np.array([0, 1]))


KERNELS = """import triton
import triton.language as tl


@triton.jit
def copy_rows(x, y, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, LOOP: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    if LOOP:
        for row in range(ROWS):
            tl.store(y + row * n + columns, tl.load(x + row * n + columns, columns < n, 0.0), row * n + columns < ROWS * n)
    else:
        places = tl.arange(0, ROWS)[:, None] * n + columns[None, :]
        tl.store(y + places, tl.load(x + places, columns < n, 0.0), mask=places < ROWS * n)


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.store(y + places, tl.load(x + places), mask=places < n)


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr, WAY: tl.constexpr):
    places = tl.arange(0, BLOCK)
    values = tl.load(x + places, mask=places < n)
    if WAY == "chosen":
        tl.store(y + places, tl.where((places < n) & (values > 0), 2 * values, 0.0))
    else:
        tl.store(y + places, 2 * values + 1)


@triton.jit
def pass_on(x, y, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    tl.store(y + program, 1.0)
    tl.store(x + program, tl.load(y + (program + BLOCK - 1) % BLOCK))


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.atomic_add(y + places, 1.0, mask=places < n)


@triton.jit
def count_with_a_lock(lock, y):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(y, tl.load(y) + 1)
    tl.atomic_xchg(lock, 0)
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Return kernels for the interpreter."""
    need_module("triton", "make .venv/.kernels")
    path = tmp_path_factory.mktemp("kernels") / "kernels.py"
    path.write_text(KERNELS)
    spec = importlib.util.spec_from_file_location("kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "programs", "arguments", "kind", "words"),
    [
        (
            "copy_rows",
            1,
            {"n": 10, "ROWS": 4, "BLOCK": 16, "LOOP": False},
            "StoredTwice",
            "13: .* number 10 of y, from two lanes",
        ),
        ("copy_rows", 1, {"n": 10, "ROWS": 4, "BLOCK": 16, "LOOP": True}, "StoredTwice", "10: .* number 10 .* another lane of"),
        (
            "copy",
            1,
            {"x": slice(0, 10), "n": 10, "BLOCK": 16},
            "OutsideTensors",
            "19: .* loads number 10 of x, which has the n",
        ),
        ("copy", 1, {"x": slice(0, 20, 2), "n": 10, "BLOCK": 16}, "OutsideTensors", "loads number 1 of x, which is in a gap"),
        ("double", 1, {"n": 10, "BLOCK": 16, "WAY": ""}, "StoredUndefined", "29: .* stores lane 10, which a load masked out"),
        ("pass_on", 4, {"BLOCK": 4}, "Race", r"36: program \(1, 0, 0\) loads number 0 of y, which another program stores"),
        ("add", 1, {"n": 70, "BLOCK": 128}, "OutsideTensors", "42: .* changes number 64 of y"),
    ],
)
def test_kernel_memory_names_the_line_of_a_fault(
    memory: ModuleType, kernels: ModuleType, torch: ModuleType, name: str, programs: int, arguments: Any, kind: str, words: str
) -> None:
    packed = torch.rand(128)  # y lies behind x
    tensors = {"x": packed[arguments.get("x", slice(0, 64))], "y": packed[64:]}
    kernel = getattr(kernels, name)
    with pytest.raises(Exception) as error, memory.KernelMemory(kernel):
        kernel[(programs,)](**(arguments | tensors))
    reason = memory.reason_of(error.value)
    assert type(reason).__name__ == kind
    assert re.match(rf"kernels\.py:\S*{words}" if words[0].isdigit() else rf".*{words}", str(reason))


def test_kernel_memory_accepts_right_kernels_and_counts_atomic_operations(
    memory: ModuleType, kernels: ModuleType, torch: ModuleType
) -> None:
    x, y = torch.rand(10), torch.zeros(16)
    with memory.KernelMemory(kernels.double) as watched:
        kernels.double[(1,)](x, y, 10, BLOCK=16, WAY="chosen")
    assert (watched.loaded_bytes(), watched.stored_bytes()) == (40, 64)
    with memory.KernelMemory(kernels.add) as watched:
        kernels.add[(3,)](x, y, 10, BLOCK=16)
    assert (watched.atomic_bytes, watched.tensors["y"].distinct_stored_bytes) == (120, 40)
    with memory.KernelMemory(kernels.count_with_a_lock):
        kernels.count_with_a_lock[(3,)](torch.zeros(1, dtype=torch.int32), count := torch.zeros(1))
    assert count.item() == 3


def test_kernel_memory_allows_programs_to_change_a_number_by_atomic_operations(
    memory: ModuleType, torch: ModuleType, np: ModuleType
) -> None:
    watched = launch_on(memory, torch.zeros(10), (0, 0, 0))
    (traffic,) = watched._now
    for program in ((0, 0, 0), (1, 0, 0)):
        watched._builder.grid_idx = program
        watched._note_atomic(traffic, np.array([3, 4]), lanes=np.array([0, 1]))
    assert (watched.atomic_bytes, traffic.loaded_bytes, traffic.stored_bytes) == (16, 16, 16)


@pytest.mark.parametrize(("version", "mended"), [("3.6.0", True), ("3.7.1", False)])
def test_mend_numbers_lets_a_number_bound_a_range_in_an_old_interpreter(
    memory: ModuleType, np: ModuleType, version: str, mended: bool
) -> None:
    """As torch 2.11 brings it, beside NumPy 2.4 or newer. From 3.7 on Triton does it itself."""

    class Number:
        handle = SimpleNamespace(data=np.array([3]))

    def patch(tensor: Any, scope: Any) -> None:
        scope.set_attr(tensor, "__index__", lambda number: int("not mended"))

    interpreter = SimpleNamespace(_patch_lang_tensor=patch)
    memory.mend_numbers(interpreter, version)
    memory.mend_numbers(interpreter, version)
    interpreter._patch_lang_tensor(Number, SimpleNamespace(set_attr=setattr))
    if mended:
        assert list(range(0, Number(), 2)) == [0, 2]  # type: ignore[call-overload]
    else:
        assert interpreter._patch_lang_tensor is patch
