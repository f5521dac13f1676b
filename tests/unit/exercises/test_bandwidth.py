"""The formulas of communication profiling, against published measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.exercises.scripts import beside_the_script

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# AllReduce of 16 A100 on two p4de nodes, 1 MiB to 2 GiB (awslabs/awsome-distributed-training, nccl-tests)
P4DE_US = [309.4, 432.6, 533.9, 762.8, 1191.8, 1540.2, 2644.6, 3912.9, 7201.7, 13552, 26217, 51406]
P4DE_SIZES = [MIB << power for power in range(len(P4DE_US))]
RECORDED = Path(__file__).parents[2] / "data" / "nccl-tests" / "all_reduce_perf.txt"


bandwidth = beside_the_script("shared", "bandwidth")
nccl_tests = beside_the_script("03-parallel-computing", "nccl_tests")


def p4de(count: int) -> tuple[list[int], list[float]]:
    sizes, seconds = P4DE_SIZES[:count], [us / 1e6 for us in P4DE_US[:count]]
    return sizes, [bandwidth.busbw("all_reduce", size, duration, 16) for size, duration in zip(sizes, seconds, strict=True)]


@pytest.mark.parametrize(
    ("size", "us", "alg", "bus"), [(2147483648, 51406, 41.77, 78.33), (8589934592, 33605, 255.62, 479.28)], ids=["p4de", "p5"]
)
def test_published_rows_of_16_gpus(size: int, us: float, alg: float, bus: float) -> None:
    assert bandwidth.algbw(size, us / 1e6) == pytest.approx(alg, abs=0.02)
    assert bandwidth.busbw("all_reduce", size, us / 1e6, 16) == pytest.approx(bus, abs=0.02)


@pytest.mark.parametrize(
    ("collective", "two", "eight"),
    [("all_reduce", 1.0, 1.75), ("broadcast", 1.0, 1.0), ("all_gather", 0.5, 0.875), ("reduce_scatter", 0.5, 0.875)],
)
def test_bus_factors(collective: str, two: float, eight: float) -> None:
    assert bandwidth.bus_factor(collective, 2) == two
    assert bandwidth.bus_factor(collective, 8) == eight


def test_for_two_ranks_the_two_bandwidths_of_an_allreduce_are_one() -> None:
    assert bandwidth.busbw("all_reduce", 12345, 0.001, 2) == bandwidth.algbw(12345, 0.001)


@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
def test_an_allreduce_is_a_reduce_scatter_and_an_all_gather(ranks: int) -> None:
    parts = bandwidth.bus_factor("reduce_scatter", ranks) + bandwidth.bus_factor("all_gather", ranks)
    assert bandwidth.bus_factor("all_reduce", ranks) == pytest.approx(parts)


def test_the_plateau_of_the_published_curve() -> None:
    plateau = bandwidth.plateau(*p4de(12))
    assert plateau.size == GIB, "512 MiB has 94.8 % of the best"
    assert plateau.gain_percent == pytest.approx(2.0, abs=0.05)
    assert plateau.words == "from 1,073,741,824 bytes"


def test_cut_at_32_mib_the_same_curve_has_no_plateau() -> None:
    plateau = bandwidth.plateau(*p4de(6))
    assert (plateau.size, plateau.words) == (None, "not reached: still rising 55% a doubling")


def test_the_last_step_is_counted_in_doublings() -> None:
    assert bandwidth.plateau([1, 4, 16], [1.0, 2.0, 2.18]).words == "from 16 bytes", "9 % over two doublings are 4.4 % each"
    assert bandwidth.plateau([1, 2, 4], [1.0, 2.0, 2.18]).size is None


def test_a_curve_that_falls_again_says_so_and_two_sizes_say_nothing() -> None:
    plateau = bandwidth.plateau([1, 2, 4, 8], [1.0, 8.0, 7.9, 6.0])
    assert (plateau.size, plateau.words) == (2, "from 2 bytes, then falling 24% a doubling")
    assert bandwidth.plateau([1, 2], [1.0, 1.0]) == bandwidth.Plateau(None, None, "too few sizes to say")


def test_the_fit_gives_back_the_line_that_made_the_times() -> None:
    sizes = [KIB << power for power in range(0, 16, 2)]
    line = bandwidth.fit(sizes, [100e-6 + size / 2.5e9 for size in sizes])
    assert line.latency_s == pytest.approx(100e-6)
    assert line.bandwidth == pytest.approx(2.5)
    assert line.half_bytes == pytest.approx(250_000)
    assert line.error_percent == pytest.approx(0, abs=1e-6)


def test_large_tensors_do_not_drown_the_latency() -> None:
    """Half a percent more on the largest of a GiB is 2 ms: plain least squares would make the latency negative or huge."""
    sizes = [KIB << power for power in range(0, 21, 4)]
    seconds = [20e-6 + size / 2.5e9 for size in sizes]
    seconds[-1] *= 1.005
    line = bandwidth.fit(sizes, seconds)
    assert line.latency_s == pytest.approx(20e-6, rel=0.02)
    assert 0 < line.error_percent < 1


@pytest.mark.parametrize(
    ("sizes", "seconds"), [([1, 2], [1, 2]), ([1, 2, 4], [4, 2, 1]), ([1, 2, 4], [0.5, 2, 9]), ([4, 4, 4], [1, 1, 1])]
)
def test_where_no_line_makes_sense_there_is_none(sizes: list[float], seconds: list[float]) -> None:
    assert bandwidth.fit(sizes, seconds) is None


def test_p99_of_twenty_is_the_largest_and_of_two_hundred_is_not() -> None:
    assert bandwidth.nearest_rank(range(1, 21), 99) == 20
    assert bandwidth.nearest_rank(range(1, 201), 99) == 198
    assert bandwidth.nearest_rank([7.0], 99) == 7.0


def test_the_recorded_table_is_read_and_agrees_with_our_formulas() -> None:
    rows = nccl_tests.parse(RECORDED.read_text(encoding="utf-8"))
    assert [row.size for row in rows] == [4 * KIB << power for power in range(16)]
    last = rows[-1]
    assert (last.count, last.dtype, last.time_us, last.algbw, last.busbw, last.wrong) == (
        33554432, "float", 1907.8, 70.35, 123.11, 0,
    )  # fmt: skip
    for row in rows:
        assert bandwidth.algbw(row.size, row.time_us / 1e6) == pytest.approx(row.algbw, abs=0.006)
        assert bandwidth.busbw("all_reduce", row.size, row.time_us / 1e6, 8) == pytest.approx(row.busbw, abs=0.011)


def test_without_validation_nothing_is_known_and_other_lines_are_skipped() -> None:
    text = "node0:17:17 [0] NCCL INFO Using network Socket\n1 2 3\n"
    text += "  8  2  float  sum  -1  9.1  0.00  0.00  N/A  9.0  0.00  0.00  N/A\n 16 4 float sum -1 9 0 0 0 9 0 0 1e+00\n"
    assert [row.wrong for row in nccl_tests.parse(text)] == [None, 1]


def program(folder: Path, body: str) -> str:
    path = folder / "all_reduce_perf"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_beside_it_our_sizes_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, f'echo "$@" >"{tmp_path}/said"; cat "{RECORDED}"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    rows, why_not = nccl_tests.beside({4096: 0.115, 8192: 0.4, 5: 1.0}, high=8192, factor=2, gpus=2, hosts=1)
    assert why_not is None
    assert [(row["bytes"], row["theirs_gb_per_s"], round(row["ours_percent"])) for row in rows] == [
        (4096, 0.23, 50),
        (8192, 0.4, 100),
    ]
    assert (tmp_path / "said").read_text().split() == "-b 5 -e 8192 -f 2 -g 2 -n 20 -w 5".split()


@pytest.mark.parametrize(
    ("body", "gpus", "hosts", "reason"),
    [
        ("cat /dev/null", 2, 1, "ended with 0 and 0 rows; its last line: nothing"),
        ("echo no CUDA-capable device >&2; exit 3", 2, 1, "ended with 3 and 0 rows; its last line: no CUDA-capable device"),
        ("echo 1 2 float sum -1 a b c 0 d e f 0", 2, 1, "could not convert"),
        ("true", 0, 1, "it needs two GPUs"),
        ("true", 16, 2, "over several nodes it needs MPI"),
    ],
)
def test_where_it_cannot_run_the_reason_is_kept(
    body: str, gpus: int, hosts: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, body)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    rows, why_not = nccl_tests.beside({1024: 1.0}, high=2048, factor=2, gpus=gpus, hosts=hosts)
    assert rows == []
    assert reason in why_not


def test_a_node_without_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(nccl_tests, "PLACES", ("/nowhere/all_reduce_perf",))
    assert nccl_tests.beside({1024: 1.0}, high=2048, factor=2, gpus=2, hosts=1) == ([], "all_reduce_perf is not on this node")
