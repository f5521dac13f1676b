"""The logs of a run, as checks read them."""

from __future__ import annotations

from pathlib import Path

from gpucourse.runs.results import read_logs
from gpucourse.workspace.paths import RunPaths


def test_read_logs_gives_both_logs_of_a_rank_that_moved_to_another_node(tmp_path: Path) -> None:
    files = RunPaths(tmp_path)
    files.logs.mkdir()
    files.rank_log("node0", 0).write_text("the last life\n")
    files.rank_log("node1", 0).write_text("the first life\n")
    assert [(log.rank, log.lines) for log in read_logs(files)] == [(0, ("the last life",)), (0, ("the first life",))]
