from __future__ import annotations

from pathlib import Path

from gpucourse.learning.pages.run_content import LogExcerpt
from gpucourse.ui.page.logs import LogLine, LogTail, describe_process, merge_logs
from gpucourse.workspace.paths import RunPaths


def test_describe_process_and_merge_logs_keep_the_order_of_arrival_with_a_gap() -> None:
    first = LogExcerpt(node="node0", rank=0, begin=b"a\nb\n", end=b"c\nd", size=100, times=((2, 1.0), (4, 5.0), (100, 9.0)))
    text = b"x\rValueError: 1\n\x1b[31my\n"
    second = LogExcerpt(node="node1", rank=1, begin=text, end=b"", size=len(text), times=((16, 3.0), (len(text), 7.0)))
    assert merge_logs("oak", [first, second]) == [
        LogLine(0, "info", "a"),
        LogLine(1, "error", "ValueError: 1"),
        LogLine(0, "info", "b"),
        LogLine(0, "gap", "... 93 B are left out here. The whole log: gpucourse logs oak --rank 0"),
        LogLine(1, "info", "y"),
        LogLine(0, "info", "c"),
        LogLine(0, "info", "d"),
    ]
    assert describe_process(("node1", None)) == ("[n1 --]", "launcher", "launcher on node1")


def test_read_returns_new_lines_once_and_only_the_newest_of_a_flood(tmp_path: Path) -> None:
    files = RunPaths(tmp_path)
    files.logs.mkdir()
    log = files.rank_log("node0", 0)
    log.write_text("one\ntw")
    tail = LogTail("oak", files)
    assert [line.text for line in tail.begin()] == ["one"]
    assert tail.read() == []
    with log.open("a") as file:
        file.write("o\nthree\n")
    files.rank_log("node1", 1).write_text("one\n")
    assert tail.read() == [LogLine(0, "info", "two"), LogLine(0, "info", "three"), LogLine(1, "info", "one")]
    assert [process.prefix for process in tail.processes] == ["[n0 r0]", "[n1 r1]"]
    with log.open("a") as file:
        file.writelines(f"{n}\n" for n in range(100_000))
    gap, *lines = tail.read()
    assert (gap.level, lines[-1].text, len(lines)) == ("gap", "99999", 500)
    assert "572.2 KiB are left out" in gap.text
    assert tail.read() == []
