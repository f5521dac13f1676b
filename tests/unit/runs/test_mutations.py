from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.errors import CheckFailed, UnknownName, UsageError
from gpucourse.runs.mutations import check_expectation, confirm_expectation, find_edited_files, keep_edited_files
from gpucourse.ui.views.result import headline
from gpucourse.workspace import runs
from gpucourse.workspace.exercises import ensure_copies
from tests.learning import Learning
from tests.unit.ui.examples import RESULTS, VERDICT, record


def test_find_edited_files_without_an_edit_is_refused(learning: Learning) -> None:
    _, exercise = learning.context.catalog.exercise("1.1")
    names = learning.context.catalog.sources(exercise)
    ensure_copies(learning.context.paths, learning.context.folders.exercises, names.values())
    with pytest.raises(UnknownName, match="dry"):
        check_expectation(learning.context, exercise, "dry")
    with pytest.raises(UsageError, match="no file of"):
        check_expectation(learning.context, exercise, "wet")
    copy = learning.context.paths.exercises / names["source.py"]
    copy.write_text(copy.read_text() + "\n# dry\n")
    check_expectation(learning.context, exercise, "wet")
    assert list(find_edited_files(learning.context, exercise)) == ["source.py"]
    record = learning.record()
    keep_edited_files(learning.context, record)
    assert record.edited == ["source.py"]
    assert runs.files_of(learning.context.paths, record).edited_file("source.py").read_text() == copy.read_text()


def test_confirm_expectation_needs_the_check_that_was_named_and_no_other() -> None:
    expecting = record(expected_red="sum")
    verdict = replace(VERDICT, checks=RESULTS[:2])
    confirm_expectation(expecting, verdict)
    assert headline(expecting, verdict).text.startswith("✓ as you predicted: only sum failed")
    for results, words in ((RESULTS[1:3], "sum, loss failed"), (RESULTS[2:3], "loss failed"), ((), "no check failed")):
        with pytest.raises(CheckFailed, match=f"you predicted that sum would fail; {words}"):
            confirm_expectation(expecting, replace(VERDICT, checks=results))
        assert f"✗ not as you predicted (sum): {words}" in headline(expecting, replace(VERDICT, checks=results)).text
