from __future__ import annotations

from pathlib import Path

from gpucourse.workspace.paths import RunPaths, WorkspacePaths


def test_rank_log_and_all_logs_are_found_by_node_and_rank(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    paths.logs.mkdir()
    for name in (
        "node0-rank10.log",
        "node0-rank2.log",
        "node0-launcher.log",
        "a-rank1-rank0.log",
        "node0-rankx.log",
        "x.times",
    ):
        (paths.logs / name).touch()
    assert list(paths.all_logs()) == [("a-rank1", 0), ("node0", 2), ("node0", 10), ("node0", None)]
    assert all(path == paths.rank_log(*log) for log, path in paths.all_logs().items())


def test_list_yours_finds_the_parts_of_every_exercise(tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path)
    assert paths.list_yours() == []
    paths.deliverables("3.2").mkdir(parents=True)
    paths.yours("3.2").touch()
    assert paths.list_yours() == [paths.yours("3.2")]
