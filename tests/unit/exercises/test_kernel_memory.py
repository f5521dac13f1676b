"""The bytes of operations, and the addresses that a kernel loads and stores."""

from __future__ import annotations

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
    return beside_the_script("05-gpu-programming", "kernel_memory")


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
    addresses = np.array([tensor.data_ptr() + 4 * 10], dtype=np.uint64)
    with pytest.raises(
        memory.OutsideTensors, match=r"program \(2, 0, 0\) loads number 10 of x_ptr, which has the numbers 0 to 9"
    ):
        watched._share_out(addresses, watched._note_load, "loads")


def test_kernel_memory_names_two_programs_that_store_the_same_number(
    memory: ModuleType, torch: ModuleType, np: ModuleType
) -> None:
    watched = launch_on(memory, torch.zeros(10), (0, 0, 0))
    (traffic,) = watched._now
    watched._note_store(traffic, np.array([3, 4]))
    watched._note_store(traffic, np.array([4]))  # the same program may
    watched._builder.grid_idx = (1, 0, 0)
    with pytest.raises(memory.StoredTwice, match=r"program \(1, 0, 0\) stores number 4 of x_ptr"):
        watched._note_store(traffic, np.array([4, 5]))


def test_kernel_memory_allows_programs_to_change_a_number_by_atomic_operations(
    memory: ModuleType, torch: ModuleType, np: ModuleType
) -> None:
    watched = launch_on(memory, torch.zeros(10), (0, 0, 0))
    (traffic,) = watched._now
    for program in ((0, 0, 0), (1, 0, 0)):
        watched._builder.grid_idx = program
        watched._note_atomic(traffic, np.array([3, 4]))
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
