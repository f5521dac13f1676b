"""The formulas of communication profiling, against published measurements."""

from __future__ import annotations

import pytest

from tests.unit.exercises.scripts import beside_the_script

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# AllReduce of 16 A100 on two p4de nodes, 1 MiB to 2 GiB (awslabs/awsome-distributed-training, nccl-tests)
P4DE_US = [309.4, 432.6, 533.9, 762.8, 1191.8, 1540.2, 2644.6, 3912.9, 7201.7, 13552, 26217, 51406]
P4DE_SIZES = [MIB << power for power in range(len(P4DE_US))]
bandwidth = beside_the_script("shared", "bandwidth")


def p4de(count: int) -> tuple[list[int], list[float]]:
    sizes, seconds = P4DE_SIZES[:count], [us / 1e6 for us in P4DE_US[:count]]
    return sizes, [bandwidth.busbw("all_reduce", size, duration, 16) for size, duration in zip(sizes, seconds, strict=True)]


@pytest.mark.parametrize(
    ("size", "us", "alg", "bus"), [(2147483648, 51406, 41.77, 78.33), (8589934592, 33605, 255.62, 479.28)], ids=["p4de", "p5"]
)
def test_busbw_of_16_gpus_is_the_published_one(size: int, us: float, alg: float, bus: float) -> None:
    assert bandwidth.algbw(size, us / 1e6) == pytest.approx(alg, abs=0.02)
    assert bandwidth.busbw("all_reduce", size, us / 1e6, 16) == pytest.approx(bus, abs=0.02)


@pytest.mark.parametrize(
    ("collective", "two", "eight"),
    [("all_reduce", 1.0, 1.75), ("broadcast", 1.0, 1.0), ("all_gather", 0.5, 0.875), ("reduce_scatter", 0.5, 0.875)],
)
def test_bus_factor_of_two_and_eight_ranks(collective: str, two: float, eight: float) -> None:
    assert bandwidth.bus_factor(collective, 2) == two
    assert bandwidth.bus_factor(collective, 8) == eight


def test_plateau_of_the_published_curve() -> None:
    plateau = bandwidth.plateau(*p4de(12))
    assert plateau.size == GIB, "512 MiB has 94.8 % of the best"
    assert plateau.gain_percent == pytest.approx(2.0, abs=0.05)
    assert plateau.words == "from 1,073,741,824 bytes"


def test_plateau_is_none_if_the_curve_still_rises() -> None:
    plateau = bandwidth.plateau(*p4de(6))
    assert (plateau.size, plateau.words) == (None, "not reached: still rises 55 % per doubling")


def test_plateau_counts_the_last_step_in_doublings() -> None:
    assert bandwidth.plateau([1, 4, 16], [1.0, 2.0, 2.18]).words == "from 16 bytes", "9 % over two doublings are 4.4 % each"
    assert bandwidth.plateau([1, 2, 4], [1.0, 2.0, 2.18]).size is None


def test_join_ends_returns_the_line_that_made_the_times() -> None:
    sizes = [KIB << power for power in range(0, 16, 2)]
    assert bandwidth.join_ends(sizes, [100e-6 + size / 2.5e9 for size in sizes]) == pytest.approx((100e-6, 2.5e9))


@pytest.mark.parametrize(("sizes", "seconds"), [([4], [1]), ([1, 2, 4], [4, 2, 1]), ([1, 2, 4], [0.5, 2, 9]), ([4, 4], [1, 1])])
def test_join_ends_is_none_if_no_line_makes_sense(sizes: list[float], seconds: list[float]) -> None:
    assert bandwidth.join_ends(sizes, seconds) is None
