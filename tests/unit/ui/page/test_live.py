from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpucourse.learning.pages.open_ import open_
from gpucourse.learning.pages.serve import LIVE_POLICY, POLICY, find_stamp
from gpucourse.model.record import RunRecord
from gpucourse.ui.page.build import build
from gpucourse.ui.page.folder import write_folder
from gpucourse.ui.page.live import LivePages
from gpucourse.ui.page.markup import File
from gpucourse.workspace import runs
from tests.learning import Learning


class Served:
    """The page of a small workspace in a folder, and how often all of it was built again."""

    def __init__(self, learning: Learning) -> None:
        self.learning, self.context, self.folder = learning, learning.open_context(), learning.root / "page"
        self.built = 0
        write_folder(self.folder, self._build())
        self.pages, self.built = LivePages(self.context, self.folder, self._build, look_s=0), 0

    def _build(self) -> Iterator[File]:
        self.built += 1
        return build(self.context, open_(self.context))

    def open(self, place: str) -> Callable[[], dict[str, Any]]:
        """Open a page; return the function that reads its next events."""
        stream = self.pages.follow(place, find_stamp(self.folder / place))

        def read() -> dict[str, Any]:
            events = [event.split("\ndata: ") for event in next(stream).decode().removeprefix("event: ").split("\n\nevent: ")]
            return {name: json.loads(data) for name, data in (event for event in events if event != [""])}

        return read

    def end(self, record: RunRecord) -> None:
        record.state = "succeeded"
        runs.save(self.context.paths, record)


@pytest.fixture
def served(learning: Learning) -> Served:
    learning.record("1.1")
    return Served(learning)


def test_follow_reports_a_run_to_each_page_and_builds_all_again_at_its_end(served: Served) -> None:
    index = served.open("index.html")
    assert index() == {"runs": []}
    record = served.learning.record("1.1", state="running", world_size=4)
    (row,) = index()["runs"]
    assert (row["id"], row["progress"]) == (record.id, "running, 4 ranks on 1 node")
    assert served.open("runs.html")().keys() == {"runs"}
    page = served.folder / row["place"]
    assert "running, 4 ranks on 1 node, " in page.read_text()
    assert record.id in (served.folder / "runs.html").read_text()
    run = served.open(row["place"])
    processes = [["[n0 r0]", "r0", "rank 0 on node0"]]
    assert run()["logs"] == {"first": True, "processes": processes, "lines": [[0, "info", "found it"]]}
    with served.learning.context.paths.run("1.1", record.id).rank_log("node0", 0).open("a") as log:
        log.write("ValueError: <script>\n")
    assert run() == {"logs": {"first": False, "processes": [], "lines": [[0, "error", "ValueError: <script>"]]}}
    served.end(record)
    assert run() == {"runs": [], "page": find_stamp(page)}
    assert ('id="under-way"' in page.read_text(), served.built) == (False, 0)
    assert [index().keys() for _ in range(3)] == [{"runs", "page"}, set(), set()]
    assert served.built == 1


def test_follow_builds_the_pages_again_once_when_an_answer_was_written(served: Served) -> None:
    page = served.open("exercises/1.1.html")
    assert page() == {"runs": []}
    served.learning.types("answer", "1.1", "--set", "where=b")
    assert [list(page()) for _ in range(4)].count(["page"]) == 1
    assert served.built == 1


def test_follow_continues_when_the_pages_cannot_be_built(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LivePages, "_write_all", lambda _: (_ for _ in ()).throw(OSError("no")))
    page = served.open("index.html")
    assert [page(), page()] == [{"runs": []}, {}]


def test_live_page_begins_with_the_policy_that_the_server_changes(served: Served) -> None:
    for file in served.folder.rglob("*.html"):
        head, policy, _ = file.read_bytes().partition(POLICY)
        assert (b"<head>" in head, policy, LIVE_POLICY in head) == (True, POLICY, False), Path(file).name
