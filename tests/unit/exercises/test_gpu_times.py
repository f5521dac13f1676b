"""The measurements of 9.2, 9.3, 9.6 and 9.7 on GPUs: the times in a trace, and the GPUs of ranks."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_torch
GATHER, REDUCE = (
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
)
PRODUCT = "ampere_sgemm_128x64_tn"


@pytest.fixture(scope="module")
def gpu_times() -> ModuleType:
    return beside_the_script("09-frontier-training", "gpu_times")


def make_kernels(*rows: tuple[str, float, float]) -> list[dict[str, Any]]:
    """Return kernels as a trace has them, from (name, begin, end) in µs."""
    return [{"cat": "kernel", "name": name, "ts": begin, "dur": end - begin} for name, begin, end in rows]


def test_measure_trace_counts_messages_without_a_computation(gpu_times: ModuleType) -> None:
    kernels = make_kernels(
        (GATHER, 0, 1000), (PRODUCT, 1000, 4000), (GATHER, 1000, 2500), (PRODUCT, 4000, 5000), (REDUCE, 4500, 7000),
        (PRODUCT, 4200, 4800),
    )  # fmt: skip
    values = gpu_times.measure_trace(kernels)
    assert (values["gathers"], values["step_ms"], values["messages_ms"], values["exposed_ms"]) == (2, 7, 5, 3)
    assert values["hidden_percent"] == pytest.approx(40)


def test_measure_trace_of_no_kernels_is_none(gpu_times: ModuleType) -> None:
    assert set(gpu_times.measure_trace([]).values()) == {None}
    assert gpu_times.measure_trace(make_kernels((PRODUCT, 0, 10)))["hidden_percent"] is None


@pytest.mark.parametrize(("backend", "others"), [("gloo", True), (None, False), ("nccl", True)])
def test_find_gpus_is_none_on_every_rank_if_one_rank_has_no_gpu(
    gpu_times: ModuleType, monkeypatch: pytest.MonkeyPatch, backend: str | None, others: bool
) -> None:
    monkeypatch.setattr(gpu_times.torch.cuda, "is_available", lambda: backend is None)
    world = SimpleNamespace(gather=lambda value: [value, others])
    assert gpu_times.find_gpus(world, backend) is None
    assert set(gpu_times.measure_experts(None, 8, 2, 4, 4).values()) == {None}
    assert set(gpu_times.measure_attention(None, 8, 2, 4).values()) == {None}
    assert gpu_times.find_device(None).type == "cpu"
