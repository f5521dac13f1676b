"""Show the result of every exercise, from real runs, on terminals of three widths."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from gpucourse.model.manifest import Exercise
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.render import render
from gpucourse.ui.table_layout import lay_out
from gpucourse.ui.tables import Paragraph, Table, View, text_of
from gpucourse.ui.views.measured import measured_table
from gpucourse.ui.views.result import LINES, MAX_WHOLE_ROWS, result
from gpucourse.workspace.paths import RunPaths
from tests.recorded_results import EXERCISES, FOLDER, read_result

RECORDED = [exercise for exercise in EXERCISES if (FOLDER / f"{exercise.id}.json").is_file()]


def show(exercise: Exercise, home: Path) -> View:
    """Return the result of the recorded run, as `run` shows it in the workspace of a home folder."""
    record, metrics, verdict = read_result(exercise)
    files = RunPaths(home / "gpucourse" / "runs" / exercise.id / record.id)
    files.folder.mkdir(parents=True)
    for plot in exercise.plots:
        files.plot(plot.file, "png").touch()
    step = f"gpucourse answer {exercise.id}"
    return result(record, files, exercise=exercise, metrics=metrics, verdict=verdict, next_step=step)


@pytest.mark.parametrize("exercise", RECORDED, ids=lambda exercise: exercise.id)
def test_result_fits_the_terminal_with_the_rows_of_its_main_table(
    exercise: Exercise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    view = show(exercise, tmp_path)
    table = next((part for part in view.blocks if isinstance(part, Table)), None)
    for width in (60, 80, 110):
        lines = render(view, width=width).splitlines()
        assert max(map(cell_len, lines)) <= width, "\n".join(lines)
        if table is None:  # what the learner has not written yet measures nothing
            assert any(isinstance(part, Paragraph) and part.text.endswith(": not measured") for part in view.blocks)
            continue
        assert width == 60 or len(lines) <= LINES or len(table.rows) <= MAX_WHOLE_ROWS, "\n".join(lines)
        layout = lay_out(table, width)
        assert len(layout.table.columns) > 1
        for index, column in enumerate(layout.table.columns):
            assert {text_of(row[index]) for row in table.rows} != {UNICODE.absent}, column.title
        assert width == 60 or set(layout.left_out) <= {column.title for column in table.columns if column.spare}

    main = exercise.main_table
    whole = (
        next((part for part in measured_table(main, read_result(exercise)[1]) if isinstance(part, Table)), None)
        if main
        else None
    )
    if main is None or whole is None:
        return
    assert table is None or all(whole.rows[index] in table.rows for index in whole.keep)
    if main.main and table and table.columns == whole.columns and len(whole.rows) <= MAX_WHOLE_ROWS:
        assert table.rows == whole.rows
    assert len({text_of(whole.rows[index][0]) for index in whole.keep}) == len(main.keep)


def test_result_keeps_the_rows_of_a_long_table_that_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    exercise = next(exercise for exercise in RECORDED if exercise.id == "5.1")
    record, metrics, verdict = read_result(exercise)
    row = dict.fromkeys(metrics["kernels"][0], 0) | {"kernel": "copy", "whose": "course"}
    kernels = [row | {"kernel": f"kernel_{number}"} for number in range(40)]
    kernels[11]["whose"] = "yours"
    kernels[23] = kernels[23] | {next(key for key in row if "wrong" in key): 5}
    files = RunPaths(tmp_path / "runs" / record.id)
    view = result(record, files, exercise=exercise, metrics=metrics | {"kernels": kernels}, verdict=verdict)
    table = next(part for part in view.blocks if isinstance(part, Table))
    names = [text_of(row[0]) for row in table.rows]
    assert next(name for name in names if name != UNICODE.ellipsis) == "kernel_0"
    assert {"kernel_11", "kernel_23", "kernel_39"} <= set(names)
    assert names.count(UNICODE.ellipsis) >= 3
    assert f"({len(names) - names.count(UNICODE.ellipsis)} of 40 rows)" in str(table.title)
    assert len(render(view, width=80).splitlines()) <= LINES
