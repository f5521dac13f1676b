"""What reaches torch's dispatcher is counted as it is, and by the line that asked for it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")


@pytest.fixture(scope="module")
def dispatch() -> ModuleType:
    return beside_the_script("05-gpu-programming", "dispatch")


def test_operations_count_each_read_of_a_value_once(dispatch: ModuleType, torch: Any) -> None:
    value = torch.ones(())
    reads = [
        value.item,
        value.tolist,
        lambda: bool(value > 0),
        lambda: float(value),
        lambda: repr(value),
        lambda: f"{value:.1f}",
    ]
    for read in reads:
        with dispatch.Operations() as operations:
            read()
        assert operations.values_read == 1, read


def test_operations_leave_out_what_an_optimizer_and_a_check_of_the_cpu_read(dispatch: ModuleType, torch: Any) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    optimizer = torch.optim.AdamW([weight])
    with dispatch.Operations() as operations:
        optimizer.step()
        torch.nn.functional.one_hot(torch.tensor([1]), 3)
    assert (operations.values_read, operations.from_python) == (0, 1)


def test_operations_say_whether_a_move_blocks(dispatch: ModuleType, torch: Any) -> None:
    with dispatch.Operations() as operations:
        torch.ones(4).to("meta", non_blocking=True)
        torch.ones(4).to("meta")
        torch.ones(4).to(torch.float64)
    assert [(move.bytes, move.non_blocking, move.pinned) for move in operations.moves] == [
        (16, True, False),
        (16, False, False),
    ]


def test_operations_see_every_kind_of_copy_of_a_parameter(dispatch: ModuleType, torch: Any) -> None:
    import copy

    model = torch.nn.Linear(2, 2)
    with dispatch.Operations() as operations:
        operations.model = model
        copy.deepcopy(model.state_dict())
        model.weight.detach().clone()
        torch.ones(2, 2).clone()
    assert operations.weight_copies == 3


def test_operations_name_the_lines_that_read_and_built(dispatch: ModuleType, torch: Any) -> None:
    with dispatch.Operations(__file__) as operations:
        for _ in range(5):
            torch.ones(()).item()
        [torch.tensor(number) for number in range(4)]
    assert list(operations.lines_read.values()) == [5]
    assert list(operations.lines_built.values()) == [4]
    assert next(iter(operations.lines_built)) == next(iter(operations.lines_read)) + 1
