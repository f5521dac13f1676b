"""The rows of five versions of a product (5.3): what is counted, what is refused, what is not measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

versions = beside_the_script("05-gpu-programming", "versions")
N = 64
RIGHT = {"version": "tiled", "n": N, "error": 0.0, "allowed": 0.01, "unwritten": 0, "ms": []}


def make_kernel(load_bytes: int = 131_072, fault: str | None = None) -> SimpleNamespace:
    load = SimpleNamespace(bytes=load_bytes, sectors_per_request=4.0)
    shared = SimpleNamespace(bank_conflicts=0)
    return SimpleNamespace(
        global_load=load, global_store=SimpleNamespace(bytes=0), shared_load=shared, shared_store=shared,
        races=int(bool(fault)), unwritten_reads=0, out_of_bounds=0, barrier_divergence=0, first_fault=lambda: fault,
    )  # fmt: skip


def test_count_version_counts_the_bytes_that_it_asks_for() -> None:
    row = versions.count_version("tiled", N, RIGHT, make_kernel())
    assert (row["state"], row["flop_per_byte"], row["load_mb"], row["error_of_allowed"]) == ("right", 4.0, 0.131072, 0.0)


@pytest.mark.parametrize(
    ("row", "kernel", "state"),
    [
        (RIGHT, make_kernel(0), "not written yet"),
        (RIGHT, None, "did not end"),
        (None, make_kernel(), "did not end"),
        (RIGHT | {"error": 1.0}, make_kernel(), "wrong"),
        (RIGHT | {"unwritten": 3}, make_kernel(), "wrong"),
        (RIGHT, make_kernel(fault="my_gemm.cu:14: a race"), "right, with a fault"),
    ],
)
def test_count_version_says_the_state(row: Any, kernel: Any, state: str) -> None:
    assert versions.count_version("tiled", N, row, kernel)["state"] == state


def test_summarize_version_takes_the_worst_size() -> None:
    small = versions.count_version("tiled", N, RIGHT | {"error": 0.02}, make_kernel(fault="a race"))
    large = versions.count_version("tiled", 96, RIGHT | {"n": 96}, make_kernel(442_368))
    version = versions.summarize_version([small, large], "tiled")
    assert (version["n"], version["error_of_allowed"], version["races"], version["fault"]) == (96, 2.0, 1, "a race")


def test_time_version_refuses_a_speed_above_the_library_or_the_sheet() -> None:
    row = RIGHT | {"n": 1000}
    fair = versions.time_version(row, 2.0, 2000.0, 8.1)
    assert (fair["gflop_per_s"], fair["percent_of_library"], fair["refused"]) == (1000.0, 50.0, False)
    for library, sheet in ((900.0, None), (None, 0.5)):
        fast_row = versions.time_version(row, 2.0, library, sheet)
        assert (fast_row["gflop_per_s"], fast_row["percent_of_library"], fast_row["refused"]) == (None, None, True)


def test_read_lines_leaves_out_what_a_kernel_prints() -> None:
    output = 'hello\n{"version": "tiled", "n": 64}\n{"version": "mine"}\n[1]\n{"failed": "tiled: an illegal memory access"}\n'
    rows, failure = versions.read_lines(output)
    assert rows == {"tiled": {"version": "tiled", "n": 64}}
    assert failure == "tiled: an illegal memory access"
