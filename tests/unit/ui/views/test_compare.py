from __future__ import annotations

from pathlib import Path

from gpucourse.learning.compare import Comparison
from gpucourse.model.report import Grid
from gpucourse.ui.views import compare
from tests.unit.ui.examples import record, text


def test_compare_shows_tables_and_says_which_one_is_empty() -> None:
    first, second = record(id="a"), record(id="b")
    grids = (
        Grid(title="Times", columns=("nodes", "a", "b"), rows=(("1", "12.3", "11.9"),), numeric=(True, True, True)),
        Grid(title="Losses", columns=(), rows=(), numeric=(), note="neither run has any"),
    )
    comparison = Comparison(
        exercise="3.1", title="Hello", mode="local", labels={"a": "1 node", "b": "2 nodes"}, records=(first, second),
        grids=grids, files=(Path("/w/comparison.png"),), conclusion="b is faster.", repeat="gpucourse run 3.1",
    )  # fmt: skip
    output = text(compare.compare(comparison))
    assert "3.1 Hello, compared" in " ".join(output.split())
    for words in ("1 node (local, succeeded)", "12.3", "Losses: neither run has any", "b is faster.", "/w/comparison.png"):
        assert words in output, words
    assert "How much of the difference is noise? Repeat a run, and compare: gpucourse run 3.1" in " ".join(output.split())
