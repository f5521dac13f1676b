"""Records of a GPU in a course: records as `benchmarks` writes them are read, and impossible ones are not. The GPU does not
exist."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_record import for_plots, write
from gpucourse.course.gpu_record import FOLDER, MAX_ROWS, find_faulty_records, find_recorded_plots
from gpucourse.model.manifest import Exercise

GPU = "Imaginary GPU 1 (a test's)"
FILE = "imaginary-gpu-1-a-test-s.json"
PLOT: dict[str, Any] = {
    "file": "speed", "title": "Speed", "kind": "line", "rows": "metrics.rows", "x": "size",
    "series": [{"key": "gb_per_s", "label": "copy", "low": "low", "high": "high"}], "x_title": "size (MiB)", "y_title": "GB/s",
}  # fmt: skip
Change = Callable[[dict[str, Any]], object]


def exercise(**changes: object) -> Exercise:
    document = {"id": "9.1", "title": "t", "goal": "g", "minutes": 1, "script": "s.py", "launch": {"kind": "torchrun"}}
    document |= {"tasks": ["t"], "hints": ["h"], "plots": [PLOT | changes]}
    return Exercise.model_validate(document)


def save_record(exercises: Path, gpu: str = GPU, date: str = "2026-01-02", gb_per_s: float = 3.0) -> Path:
    metrics = {"rows": [{"size": 1, "gb_per_s": gb_per_s, "low": 2.0, "high": float("inf"), "seed": 7}]}
    entry = {"settings": {}, "seconds": 1.0, "checks": {"right": "passed"}, "plots": for_plots(exercise(), metrics)}
    versions = {"torch": "0.0.1", "cuda": "0.1", "driver": None}
    record = {"gpu": gpu, "date": date, "gpus": 1, "versions": versions, "ceilings": {}, "exercises": {"9.1": entry}}
    return write(exercises / FOLDER, record)


def read_plots(exercises: Path, **changes: object) -> tuple[dict[str, Any], list[str]]:
    warnings: list[str] = []
    return dict(find_recorded_plots(exercises, exercise(**changes), warnings.append)), warnings


def test_find_recorded_plots_reads_what_the_writer_writes(tmp_path: Path) -> None:
    assert save_record(tmp_path).name == FILE
    plots, warnings = read_plots(tmp_path)
    record, plot = plots["speed"]
    assert (record.gpu, record.caption) == (GPU, "recorded 2026-01-02: torch 0.0.1, cuda 0.1")
    assert plot.rows == [{"size": 1, "gb_per_s": 3.0, "low": 2.0, "high": None}], "no column that the plot does not draw"
    assert warnings == find_faulty_records(tmp_path) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"x": "bytes"},
        {"by": "way"},
        {"series": [{"key": "best", "label": "copy"}]},
    ],
)
def test_find_recorded_plots_ignores_other_axes_or_keys(changes: dict[str, Any], tmp_path: Path) -> None:
    save_record(tmp_path)
    assert read_plots(tmp_path, **changes) == ({}, [])


def test_find_recorded_plots_uses_the_newest(tmp_path: Path) -> None:
    save_record(tmp_path, date="2026-01-03", gb_per_s=5.0)
    save_record(tmp_path, gpu="Imaginary GPU 2", date="2026-01-02")
    plots, _ = read_plots(tmp_path)
    assert plots["speed"][1].rows[0]["gb_per_s"] == 5.0


def test_gpu_record_for_plots_has_a_bounded_number_of_rows() -> None:
    rows = [{"size": size, "gb_per_s": 1.0} for size in range(3 * MAX_ROWS + 1)]
    record = for_plots(exercise(), {"rows": rows})["speed"]["rows"]
    assert MAX_ROWS / 2 < len(record) <= MAX_ROWS
    assert for_plots(exercise(), {"rows": []}) == {}


def plot_of(document: dict[str, Any]) -> dict[str, Any]:
    plot: dict[str, Any] = document["exercises"]["9.1"]["plots"]["speed"]
    return plot


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda document: document.update(format=1), "its format is 1"),
        (lambda document: document.update(gpu="Another GPU"), "it is about Another GPU"),
        (lambda document: document.update(gpu="Imaginary\x1bGPU 1 (a test's)"), "unprintable"),
        (lambda document: document.update(date="yesterday"), "is not a date"),
        (lambda document: document.update(versions={str(n): "1" for n in range(9)}), "more than 8 versions"),
        (lambda document: document.update(versions={"torch": 2}), "does not have the required form"),
        (lambda document: plot_of(document).update(rows=[{"size": [1]}]), "does not have the required form"),
        (lambda document: plot_of(document).update(rows=[{}] * (MAX_ROWS + 1)), f"more than {MAX_ROWS} rows"),
    ],
)
def test_find_faulty_records_names_one_that_cannot_be_right(change: Change, reason: str, tmp_path: Path) -> None:
    path = save_record(tmp_path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    plots, warnings = read_plots(tmp_path)
    assert plots == {}
    assert reason in warnings[0]
    assert warnings[0].startswith(f"{FOLDER}/{FILE}: cannot be used: ")
    assert find_faulty_records(tmp_path) == warnings


def test_list_files_leaves_out_links_pipes_and_invalid_json(tmp_path: Path) -> None:
    path = save_record(tmp_path)
    elsewhere = path.rename(tmp_path / "elsewhere")
    path.symlink_to(elsewhere)
    os.mkfifo(path.with_name("pipe.json"))
    path.with_name("text.json").write_text("no JSON")
    path.with_name("list.json").write_text("[]")
    plots, warnings = read_plots(tmp_path)
    assert plots == {}
    assert [warning.split(":")[0] for warning in warnings] == [
        f"{FOLDER}/{name}" for name in (FILE, "list.json", "pipe.json", "text.json")
    ]


def test_find_recorded_plots_reads_a_bounded_number_of_records(tmp_path: Path) -> None:
    for number in range(17):
        save_record(tmp_path, gpu=f"Imaginary GPU {number}")
    plots, warnings = read_plots(tmp_path)
    assert plots.keys() == {"speed"}
    assert warnings == [f"{FOLDER}/: of 17 records only the first 16 are read"]
