"""A line of three megabytes: a terminal gets its beginning, a pipe gets all of it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpucourse.cli.logs import _print, _print_by_time, _print_folded, _print_raw
from gpucourse.runs.logs import StoredLog
from gpucourse.ui.out import Out
from tests.learning import Learning

LENGTH = 3_000_000
RECORD: Any = SimpleNamespace(created="2026-11-23T05:00:00+00:00", ended=None)


def show_by_time(session: Any, logs: list[StoredLog]) -> None:
    _print_by_time(session, RECORD, logs)


@pytest.mark.parametrize(
    ("show", "terminal"),
    [
        (_print, True), (_print_raw, True), (_print_folded, True), (show_by_time, True),
        (_print, False), (_print_folded, False), (show_by_time, False),
    ],
)  # fmt: skip
def test_logs_cuts_long_lines_for_a_terminal_alone(
    tmp_path: Path, show: Callable[[Any, list[StoredLog]], None], terminal: bool
) -> None:
    path = tmp_path / "node0-rank0.log"
    path.write_bytes(b"before\n" + b"x" * LENGTH + b"\nafter\n")
    log = StoredLog(node="node0", rank=0, path=path, times=tmp_path / "none")
    text = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    out = Out(text)
    out.terminal = terminal
    show(
        SimpleNamespace(
            console=SimpleNamespace(out=out, colour=lambda _out: False, width=lambda _out: 80 if terminal else None)
        ),
        [log],
    )
    text.seek(0)
    output = text.read()
    if terminal:
        assert output.count("x") == 2000
        assert "2,998,000 more bytes, whole line in" in output
        assert [line.split()[-1] for line in output.splitlines() if "x" not in line and "bytes" not in line] == [
            "before",
            "after",
        ]
    else:
        assert output.count("x") == LENGTH


def test_logs_prints_one_rank_and_follows_a_run_that_has_ended(learning: Learning) -> None:
    record = learning.record(nodes=["node0", "node1"])
    (learning.folder(record) / "logs" / "node1-rank1.log").write_text("lost it\n")
    assert learning.types("logs", record.id, "--rank", "1").out.split()[-2:] == ["lost", "it"]
    result = learning.types("logs", record.id, "-f")
    assert "passed on simulated nodes" in result.out
    assert "lost it" in result.out + result.err
    assert "has no log of rank 7" in learning.types("logs", record.id, "--rank", "7", code=2).err
