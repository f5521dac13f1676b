"""The bytes that operations of torch move."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def traffic(torch: ModuleType) -> ModuleType:
    return beside_the_script("05-gpu-programming", "traffic")


@pytest.fixture(scope="module")
def roof_kernels(torch: ModuleType) -> ModuleType:
    return beside_the_script("05-gpu-programming", "roof_kernels")


def test_byte_counter_counts_operands_and_results(torch: ModuleType, traffic: ModuleType) -> None:
    u, v = torch.rand(10, 10), torch.rand(10, 10)
    for call, read, written_bytes in (
        (lambda: u + v, 800, 400),
        (lambda: u[1:-1, 1:-1] * 2, 256, 256),
        (lambda: u.add_(v, alpha=2), 800, 400),
        (lambda: torch.mul(u, 2, out=v), 400, 400),
        (lambda: u.copy_(v), 400, 400),
        (u.zero_, 0, 400),
        (lambda: u[2:].view(-1)[:5], 0, 0),
        (lambda: torch.empty(7), 0, 0),
        (lambda: u[0].expand(50, 10).sum(), 40, 4),
    ):
        with traffic.ByteCounter() as counter:
            call()
        assert (counter.read, counter.written) == (read, written_bytes)


def test_byte_counter_of_a_step_of_heat_is_what_the_lesson_draws(
    torch: ModuleType, traffic: ModuleType, roof_kernels: ModuleType
) -> None:
    u, out = torch.rand(34, 66), torch.rand(34, 66)
    with traffic.ByteCounter() as counter:
        roof_kernels.step_slowly(u, out, 0.1)
    points = 32 * 64
    assert (counter.total / points, counter.operations) == (104, 10)
