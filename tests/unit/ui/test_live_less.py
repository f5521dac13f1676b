from __future__ import annotations

import io

import pytest

from gpucourse.model.event import LogBytes, NodeEvent, Note, Stage
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.line import plain
from gpucourse.ui.live import Live
from gpucourse.ui.loglines import TABLE_MARKER
from gpucourse.ui.out import Out
from gpucourse.ui.progress import LISTED_AFTER_S, MOST_AT_ONCE, Progress
from tests.unit.ui.emulator import Emulator
from tests.unit.ui.test_live import show_logs, write_to_pipe


def log_of_a_failure(live: Live) -> None:
    live(Stage(name="run", text="running", silence="importing torch"))
    live(LogBytes(node="node0", rank=None, data=b"torchrun: a word\n" * 30))
    lines = [b"[rank0]: Traceback (most recent call last):", b'[rank0]:   File "/w/mine.py", line 7, in <module>']
    lines += [b"[rank0]:     dist.barrier()", b'[rank0]:   File "/v/lib/python3.11/site-packages/torch/x.py", line 5, in f']
    lines += [b"[rank0]:     work.wait()", b"[rank0]:     ^^^^", b"[rank0]: RuntimeError: closed", b"frame #0: c10::f() + 0x12"]
    live(LogBytes(node="node0", rank=0, data=b"\n".join([*lines, b"    my own words", b""])))
    live(Stage(name="run", text="running", seconds=1.5))


@pytest.mark.parametrize("moving", [True, False])
def test_live_counts_lines_of_launchers_and_libraries(*, moving: bool) -> None:
    text = io.StringIO()
    with Live(Out(text), colour=False, moving=moving) as live:
        log_of_a_failure(live)
    emulator = Emulator(100)
    emulator.feed(text.getvalue())
    assert [line for line in emulator.lines if "running" not in line and "done" not in line] == [
        "[n0 r0] [rank0]: Traceback (most recent call last):",
        '[n0 r0] [rank0]:   File "/w/mine.py", line 7, in <module>',
        "[n0 r0] [rank0]:     dist.barrier()",
        "[n0 r0] [rank0]: RuntimeError: closed",
        "[n0 r0]     my own words",
        "… 34 lines of launchers and libraries: logs/node0-launcher.log, logs/node0-rank0.log",
    ]


def test_live_shows_lines_of_slurm_always_and_of_launchers_when_verbose() -> None:
    text = io.StringIO()
    with Live(Out(text), colour=False, moving=False, verbose=True) as live:
        log_of_a_failure(live)
    assert text.getvalue().count("torchrun: a word") == 30
    slurm = LogBytes(node="node0", rank=None, data=b"job 1 is RUNNING\n", scheduled=True)
    assert write_to_pipe([slurm]) == "[n0 --] job 1 is RUNNING\n"


def test_progress_explains_silence_until_a_rank_prints() -> None:
    silent = Stage(name="run", text="running", silence="importing torch")
    assert write_to_pipe([silent]).startswith("· running (importing torch …)\n")
    progress = Progress(UNICODE)
    progress.stage(silent, 0.0)
    assert [plain(row) for row in progress.rows(1.0, 10, 80)][1] == "    importing torch …"
    progress.note_output()
    assert len(progress.rows(1.0, 10, 80)) == 1


def test_live_of_one_of_several_runs_shows_only_warnings() -> None:
    text = io.StringIO()
    with Live(Out(text), colour=False, moving=False, brief=True) as live:
        show_logs(live)
        live(Note(text="node1 is slow", level="warning"))
    assert text.getvalue() == "! node1 is slow\n"


def test_transcript_leaves_out_tables_that_the_result_shows() -> None:
    live = Live(Out(io.StringIO()), colour=False, moving=False)
    with live:
        live(LogBytes(node="node0", rank=0, data=b"before\n" + TABLE_MARKER + b"\ncase  x\n----  -\na     1\n\nafter\n"))
    assert [plain(row) for row in live.transcript(stages=5, logs=9)] == ["[n0 r0] before", "[n0 r0] after"]


def test_pipe_counts_parts_beyond_the_first_forty() -> None:
    text, now = io.StringIO(), [0.0]
    with Live(Out(text), colour=False, moving=False, clock=lambda: now[0]) as live:
        live(Stage(name="launch", text="starting 64 ranks"))
        now[0] = LISTED_AFTER_S + 1
        for number in range(64):
            live(NodeEvent(node=f"node{number}", step="start", ok=number != 60, seconds=float(number)))
        live(Stage(name="launch", text="starting 64 ranks", seconds=13.0, ok=False))
    assert [" ".join(line.split()) for line in text.getvalue().splitlines()[MOST_AT_ONCE:]] == [
        f"✓ node{MOST_AT_ONCE - 1} start {MOST_AT_ONCE - 1}.0 s",
        "✗ node60 start failed 60.0 s",
        "✓ 63 nodes: start median 31.0 s, slowest 63.0 s (node63)",
        "✗ failed 13.0 s",
    ]
