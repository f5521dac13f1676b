"""The measurements of earlier runs that travel along: the newest good one of each device and model."""

from __future__ import annotations

import json
from pathlib import Path

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from gpucourse.model.record import RunRecord, RunState
from gpucourse.runs.earlier_runs import earlier_runs
from gpucourse.workspace import runs
from gpucourse.workspace.paths import WorkspacePaths

_, COSTS = load(find_course({})).exercise("4.4")


def write_run(
    paths: WorkspacePaths, number: int, *, device: str = "Tesla T4", model: str = "gpt2", state: RunState = "succeeded",
    verdict: str | None = "passed", text: str | None = None,
) -> str:  # fmt: skip
    name = f"20260101-0000{number:02}-otter"
    folder = paths.run("4.3", name)
    folder.folder.mkdir(parents=True)
    folder.metrics.write_text(text or json.dumps({"device": device, "model": model}), encoding="utf-8")
    record = RunRecord(
        id=name, exercise="4.3", module="4", stack="04-local", mode="local", launcher="python", state=state,
        created=f"2026-01-01T00:00:{number:02}+00:00", verdict=verdict,
    )  # fmt: skip
    runs.save(paths, record)
    return f"earlier-4.3-{name}.json"


def names(paths: WorkspacePaths) -> list[str]:
    return [upload.name for upload in earlier_runs(paths, COSTS)]


def test_earlier_runs_are_the_newest_of_each_device_and_model(tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path)
    write_run(paths, 1)
    newest = write_run(paths, 2)
    other_model = write_run(paths, 3, model="opt-1.3b")
    other_device = write_run(paths, 4, device="NVIDIA L4")
    assert names(paths) == [other_device, other_model, newest]


def test_failed_or_damaged_run_is_left_out(tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path)
    good = write_run(paths, 1, verdict="not_measured")
    write_run(paths, 2, verdict="failed")
    write_run(paths, 3, state="cancelled", verdict=None)
    write_run(paths, 4, text="{torn")
    write_run(paths, 5, text="[]")
    assert names(paths) == [good]
