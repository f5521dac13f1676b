"""What 5.12 counts: graphs, the lines that end them, tensors that enter and leave them, and the bytes of operations."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "05-gpu-programming"
pytestmark = [pytest.mark.slow, needs_module("torch")]  # the import of torch's compiler takes two seconds


@pytest.fixture(scope="module")
def compilations() -> ModuleType:
    return beside_the_script(FOLDER, "compilations")


def test_the_block_as_delivered_is_compiled_in_pieces_until_torch_gives_up(compilations: ModuleType) -> None:
    series = compilations.list_series()
    inputs = [arguments for calls in series.values() for arguments in calls]
    calls = compilations.watch(compilations.compile_block, inputs)
    assert [graph.text.strip() for graph in calls[0].compiled] == [
        "rms = h.square().mean().sqrt().item()", "if gate.sum() < 0:", "",
    ]  # fmt: skip
    assert [bool(call.runs) for call in calls] == [index < compilations.RECOMPILE_LIMIT for index in range(len(calls))]
    assert len(inputs) == 31


def test_watch_sees_work_before_and_after_a_graph(compilations: ModuleType) -> None:
    import torch

    x = torch.ones(4, 8)
    for wrap, outside in (
        (lambda compiled: compiled, False),
        (lambda compiled: lambda x: compiled(x + 1), True),
        (lambda compiled: lambda x: compiled(x) + 1, True),
        (lambda _compiled: lambda x: x * 2, True),
    ):
        make = lambda backend, wrap=wrap: wrap(torch.compile(lambda x: x * 2, backend=backend))  # noqa: E731
        assert compilations.watch(make, [(x,)])[0].has_work_outside((x,)) is outside


def test_a_trace_has_the_bytes_of_each_operation() -> None:
    import torch

    operation_bytes = beside_the_script(FOLDER, "operation_bytes")
    tensors = operation_bytes.make_tensors(256, 512, torch.device("cpu"))
    trace = operation_bytes.trace(operation_bytes.plain_block, operation_bytes.NAMES, tensors)
    large, row, column = 256 * 512 * 4, 512 * 4, 256 * 4
    assert trace.bytes == (large + 2 * row + large + 2 * column) + (row + 2 * large) + 2 * large + 3 * large
    for folder in ("solutions", "solutions/other"):
        least_bytes = beside_the_script(f"{FOLDER}/{folder}", "my_bytes").least_bytes
        assert least_bytes(trace.operations, trace.bytes_of, trace.results) == 2 * large + 3 * row
