from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpucourse.workspace.files import changing, read_mapping
from gpucourse.workspace.paths import WorkspacePaths
from tests.waiting import STUCK_S


def test_changing_loses_nothing_when_many_change_at_once(tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path)
    barrier = threading.Barrier(8)

    def add(number: int) -> None:
        barrier.wait(STUCK_S)
        with changing(paths, paths.hints) as hints:
            hints[str(number)] = number

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    assert read_mapping(paths.hints) == {str(number): number for number in range(8)}


def test_changing_leaves_the_file_as_it_was_after_an_error(tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path)
    with changing(paths, paths.hints) as hints:
        hints["3.2"] = 1
    with pytest.raises(ZeroDivisionError), changing(paths, paths.hints) as hints:
        hints["3.2"] = 1 // 0
    assert read_mapping(paths.hints) == {"3.2": 1}
