"""A recording in place of a CUDA graph: it reads addresses, writes its output again, and stops when a value is read."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def graphs(torch: ModuleType) -> ModuleType:
    return beside_the_script("05-gpu-programming", "graphs")


def test_replay_sees_what_is_copied_and_not_a_new_tensor(graphs: ModuleType, torch: ModuleType) -> None:
    device_graphs, static = graphs.Graphs(torch.device("cpu")), torch.ones(3)
    graph = device_graphs.capture(lambda: (static * 2).sum(dim=0, keepdim=True))
    static.copy_(torch.tensor([1.0, 2.0, 3.0]))
    graph.replay()
    assert (graph.output.item(), device_graphs.moved) == (12, 0)
    static = torch.zeros(3)  # the name is another tensor's now
    graph.replay()
    assert graph.output.item() == 12
    assert (device_graphs.captures, device_graphs.replays, device_graphs.failures) == (1, 2, 0)


def test_replay_reads_a_tensor_at_its_old_address(graphs: ModuleType, torch: ModuleType) -> None:
    device_graphs, static = graphs.Graphs(torch.device("cpu")), torch.ones(3)
    graph = device_graphs.capture(lambda: static + 1)
    static.data = torch.full((3,), 9.0)
    graph.replay()
    assert graph.output.tolist() == [2, 2, 2]
    assert device_graphs.moved == 1


def test_capture_refuses_a_call_that_reads_a_value(graphs: ModuleType, torch: ModuleType) -> None:
    device_graphs, x = graphs.Graphs(torch.device("cpu")), torch.ones(3)
    calls = [
        lambda: x.sum().item(),
        lambda: x * 2 if x.sum() > 0 else x * 3,
        lambda: x[x > 0],
        x.nonzero,
        lambda: torch.equal(x, x),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="operation not permitted when stream is capturing"):
            device_graphs.capture(call)
    assert (device_graphs.captures, device_graphs.failures) == (0, len(calls))


def test_operation_counter_leaves_views_and_replays_out(graphs: ModuleType, torch: ModuleType) -> None:
    device_graphs, x = graphs.Graphs(torch.device("cpu")), torch.ones(2, 3)
    graph = device_graphs.capture(lambda: x.t().reshape(6) * 2)
    with graphs.OperationCounter() as counter:
        x.view(3, 2).transpose(0, 1)
        torch.empty(3)
    assert counter.count == 0
    with graphs.OperationCounter() as counter:
        x.copy_(torch.zeros(2, 3))
        graph.replay()
        graph.output.clone()
    assert counter.count == 3, "zeros, copy and clone"
