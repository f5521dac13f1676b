"""The rows of five versions of a product: what is counted, what is refused, what is not measured."""

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


def time_all(**speeds: float | None) -> list[dict[str, Any]]:
    return [
        {"version": version, "n": 4096, "gflop_per_s": speed, "percent_of_library": 10.0} for version, speed in speeds.items()
    ]


def test_a_version_is_counted_by_the_bytes_that_it_asks_for() -> None:
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
def test_the_state_of_a_version_is_said(row: Any, kernel: Any, state: str) -> None:
    assert versions.count_version("tiled", N, row, kernel)["state"] == state


def test_what_is_not_written_has_no_figure() -> None:
    row = versions.count_version("tiled", N, RIGHT, make_kernel(0))
    assert versions.find_worst([row]) is None
    assert versions.count_faults([row]) is None
    assert versions.ratio(row["flop_per_byte"], 4.0) is None


def test_the_worst_size_counts() -> None:
    small = versions.count_version("tiled", N, RIGHT | {"error": 0.02}, make_kernel(fault="a race"))
    large = versions.count_version("tiled", 96, RIGHT | {"n": 96}, make_kernel(442_368))
    version = versions.summarize_version([small, large], "tiled")
    assert (version["n"], version["error_of_allowed"], version["races"], version["fault"]) == (96, 2.0, 1, "a race")


def test_a_speed_above_the_library_or_the_sheet_is_refused() -> None:
    row = RIGHT | {"n": 1000}
    fair = versions.time_version(row, 2.0, 2000.0, 8.1)
    assert (fair["gflop_per_s"], fair["percent_of_library"], fair["refused"]) == (1000.0, 50.0, False)
    for library, sheet in ((900.0, None), (None, 0.5)):
        above = versions.time_version(row, 2.0, library, sheet)
        assert (above["gflop_per_s"], above["percent_of_library"], above["refused"]) == (None, None, True)


def test_a_library_above_the_sheet_is_refused() -> None:
    assert versions.describe_library(64, "float32", 9000.0, 8.1) == {
        "what": "float32",
        "n": 64,
        "gflop_per_s": None,
        "refused": True,
    }
    assert versions.describe_library(64, "float32", 8000.0, 8.1)["gflop_per_s"] == 8000.0
    assert versions.describe_library(64, "float32", 9000.0, None)["refused"] is False


def test_a_version_that_was_not_timed_is_not_refused() -> None:
    row = versions.time_version(RIGHT, None, 1000.0, 8.1)
    assert (row["gflop_per_s"], row["refused"]) == (None, False)


def test_steps_that_go_down_are_counted() -> None:
    assert versions.count_steps_down(time_all(naive=1.0, coalesced=2.0, tiled=3.0, registers=4.0)) == 0
    assert versions.count_steps_down(time_all(naive=1.0, coalesced=2.0, tiled=1.5, registers=4.0)) == 1
    assert versions.count_steps_down(time_all(naive=1.0, coalesced=2.0, tiled=None, registers=4.0)) is None
    assert versions.count_steps_down([]) is None


def test_lines_of_a_kernel_that_prints_are_not_taken_for_rows() -> None:
    output = 'hello\n{"version": "tiled", "n": 64}\n{"version": "mine"}\n[1]\n{"failed": "tiled: an illegal memory access"}\n'
    rows, failed = versions.read_lines(output)
    assert rows == {"tiled": {"version": "tiled", "n": 64}}
    assert failed == "tiled: an illegal memory access"


def test_the_page_shows_published_figures_with_their_sources() -> None:
    counted = [versions.count_version(version, N, RIGHT, make_kernel()) for version in versions.VERSIONS]
    page = versions.write_page("a GPU", counted, [])
    assert "Not measured: that needs a GPU and nvcc." in page
    assert "| registers | 15,971.7 (68.7) | 12,053.7 (84.9) |" in page
    for card in versions.PUBLISHED:
        assert f"{card['gpu']}: {card['source']}" in page
    assert "| tiled | 4096 | not measured | 3 | 10.0 |" in versions.write_page(
        "T4", counted, [row | {"median_ms": None} for row in time_all(tiled=3.0)]
    )


def test_your_versions_stand_beside_the_published_ones() -> None:
    rows = {row["version"]: row for row in versions.set_beside(time_all(tiled=3.0))}
    assert rows["tiled"]["yours"] == 10.0
    assert rows["registers"]["yours"] is None
    assert [round(rows[version]["a6000"], 1) for version in versions.FLOAT32] == [1.3, 8.5, 12.8, 68.7]
