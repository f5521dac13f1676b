from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.errors import GpucourseError, Interrupted
from gpucourse.model.event import Event, LogBytes, NodeEvent, Note, ResourceEvent, Stage
from gpucourse.ui.live import Live
from gpucourse.ui.out import Out
from tests.unit.ui.emulator import Emulator, Terminal, terminal
from tests.waiting import until


def resource(address: str, state: str, *, action: str = "create", seconds: float = 0.0, detail: str = "") -> ResourceEvent:
    return ResourceEvent(address=address, action=action, state=state, seconds=seconds, detail=detail)  # type: ignore[arg-type]


def list_events() -> list[Event]:
    return [
        Stage(name="plan", text="planning"),
        resource("terraform_data.node[0]", "planned"),
        resource("terraform_data.node[1]", "planned"),
        resource("data.external.x", "planned", action="read"),
        Stage(name="plan", text="planning", seconds=0.31),
        Stage(name="apply", text="building module-3-local"),
        resource("terraform_data.node[0]", "started"),
        resource("terraform_data.node[1]", "started"),
        resource("terraform_data.node[0]", "done", seconds=0.12),
        resource("terraform_data.node[1]", "failed", seconds=0.2, detail="exit code 1"),
        Stage(name="apply", text="building module-3-local", seconds=1.25, ok=False),
        Stage(name="ready", text="waiting until every node is ready"),
        NodeEvent(node="node0", step="ssh", ok=True, seconds=0.04),
        NodeEvent(node="node0", step="python", ok=True, seconds=0.2, detail="3.11.2"),
        NodeEvent(node="node1", step="ssh", ok=False, seconds=5.0, detail="connection refused"),
        Stage(name="ready", text="waiting until every node is ready", seconds=5.1, ok=False),
        Note(text="torch is not installed on node1", level="warning"),
        Note(text="all done"),
    ]


def write_to_pipe(events: list[Event], *, quiet: bool = False) -> str:
    text = io.StringIO()
    with Live(Out(text), colour=False, moving=False, quiet=quiet) as live:
        for event in events:
            live(event)
    return text.getvalue()


def test_live_in_a_pipe_prints_one_plain_line_for_each_finished_item() -> None:
    assert write_to_pipe(list_events()).splitlines() == [
        "✓ planning                                    0.31 s",
        "· building module-3-local",
        "  ✓ terraform_data.node[0]  created           0.12 s",
        "  ✗ terraform_data.node[1]  failed            0.20 s  exit code 1",
        "  ✗ failed                                    1.25 s",
        "· waiting until every node is ready",
        "  ✓ node0     ssh 0.04 s",
        "  ✓ node0     python 0.20 s (3.11.2)",
        "  ✗ node1     ssh failed 5.00 s",
        "      connection refused",
        "  ✗ failed                                    5.10 s",
        "! torch is not installed on node1",
        "· all done",
    ]


@pytest.mark.parametrize(("verbose", "lines"), [(False, 1), (True, 2)])
def test_live_shows_a_stage_that_goes_well_in_one_line_unless_verbose(*, verbose: bool, lines: int) -> None:
    def work(live: Live) -> None:
        live(Stage(name="push", text="pushing"))
        live(NodeEvent(node="node0", step="push", ok=True, seconds=0.04))
        live(Stage(name="push", text="pushing", seconds=0.1))

    for moving in (True, False):
        text = io.StringIO()
        with Live(Out(text), colour=False, moving=moving, verbose=verbose) as live:
            work(live)
        emulator = Emulator(100)
        emulator.feed(text.getvalue())
        assert len(emulator.lines) == lines + (verbose and not moving), "a pipe has a line for the head as well"


@pytest.mark.parametrize("moving", [False, True])
def test_live_continues_as_in_a_pipe_after_its_own_error(moving: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise IndexError("a row that is not there")

    text, log = io.StringIO(), tmp_path / "gpucourse.log"
    with Live(Out(text), colour=False, moving=moving, log=lambda: log) as live:
        monkeypatch.setattr(live, "_log" if not moving else "_rows", fail)
        live(LogBytes(node="node0", rank=0, data=b"step 1\n"))
        if moving:
            until(lambda: "could not draw" in text.getvalue(), "the warning")
        live(Note(text="the run is over"))
    assert text.getvalue().count("could not draw the live screen: IndexError: a row that is not there") == 1
    assert "the run is over" in text.getvalue()
    assert log.read_text(encoding="utf-8").splitlines()[0].endswith(")")


def test_live_when_quiet_shows_warnings_only() -> None:
    logs: list[Event] = [LogBytes(node="node0", rank=0, data=b"epoch 1\n")]
    assert write_to_pipe([*list_events(), *logs], quiet=True) == "! torch is not installed on node1\n"


def show_on_terminal(work: Callable[[Live, Terminal], None], *, columns: int = 100, lines: int = 30) -> tuple[Emulator, str]:
    with terminal(columns, lines) as screen, Live(Out(screen.stream), colour=True, moving=True) as live:
        work(live, screen)
    emulator = Emulator(columns)
    emulator.feed(screen.received)
    return emulator, screen.received


def test_live_on_a_terminal_shows_a_tree_that_freezes() -> None:
    def work(live: Live, _screen: Terminal) -> None:
        for event in list_events():
            live(event)

    emulator, output = show_on_terminal(work)
    assert emulator.lines == [
        "✓ planning                                    0.31 s",
        "✗ building module-3-local                     1.25 s",
        "  ✓ terraform_data.node[0]  created           0.12 s",
        "  ✗ terraform_data.node[1]  failed            0.20 s  exit code 1",
        "✗ waiting until every node is ready           5.10 s",
        "  ✓ node0     ssh 0.04 s · python 0.20 s (3.11.2)",
        "  ✗ node1     ssh failed 5.00 s",
        "      connection refused",
        "! torch is not installed on node1",
        "· all done",
    ]
    assert emulator.cursor_visible
    assert "\x1b[32m✓" in output


def test_live_on_a_terminal_wraps_notes_by_word() -> None:
    text = "run oak may still run here; stop it: gpucourse cancel 20261122-150152-oak"
    emulator, _ = show_on_terminal(lambda live, _screen: live(Note(text=text, level="warning")), columns=40)
    assert emulator.lines == ["! run oak may still run here; stop it:", "  gpucourse cancel 20261122-150152-oak"]


def show_logs(live: Live) -> None:
    live(Stage(name="run", text="running 3.2 on node0, node1"))
    for number in range(30):
        live(LogBytes(node="node0", rank=0, data=b"epoch %d\n" % number))
        live(LogBytes(node="node1", rank=1, data=b"epoch %d\n" % number))
    live(LogBytes(node="node1", rank=None, data=b"no newline"))
    live(Stage(name="run", text="running 3.2 on node0, node1", seconds=1.5))


def test_live_on_a_terminal_shows_logs_before_the_end_of_their_stage() -> None:
    emulator, output = show_on_terminal(lambda live, _screen: show_logs(live))
    assert [line for line in emulator.lines if "r0" in line] == [f"[n0 r0] epoch {number}" for number in range(30)]
    assert emulator.lines[-2] == "… 1 line of the launcher: logs/node1-launcher.log"
    assert emulator.lines[-1].startswith("✓ running 3.2")
    assert "\x1b[36m[n0 r0] \x1b[0mepoch 0" in output
    assert "\x1b[35m[n1 r1] \x1b[0mepoch 0" in output


@pytest.mark.parametrize("moving", [True, False])
@pytest.mark.parametrize("quiet", [True, False])
def test_show_tail_shows_the_last_lines_of_a_rank(*, moving: bool, quiet: bool) -> None:
    data = b"".join(b"line %d\n" % number for number in range(3000)) + b"Error: \x1b[31mno"
    text = io.StringIO()
    with Live(Out(text), colour=False, moving=moving, quiet=quiet) as live:
        live(LogBytes(node="node1", rank=1, data=data))
    text.seek(0)
    text.truncate()
    live.show_tail("node1", 1)
    emulator = Emulator(100)
    emulator.feed(text.getvalue())
    assert emulator.lines[0] == "last 8 lines of rank 1 on node1:"
    assert emulator.lines[1:3] == ["[n1 r1] line 2993", "[n1 r1] line 2994"]
    assert emulator.lines[-2:] == ["[n1 r1] Error: no", "the whole log is in logs/node1-rank1.log"]
    live.show_tail("node7", 7)


@pytest.mark.parametrize(
    ("error", "sign"), [(GpucourseError("x"), "✗"), (KeyboardInterrupt(), "–"), (Interrupted("let go"), "–")]
)
def test_live_shows_the_sign_of_a_stage_that_was_interrupted(error: BaseException, sign: str) -> None:
    text = io.StringIO()

    def break_off() -> None:
        with Live(Out(text), colour=False, moving=False) as live:
            live(Stage(name="apply", text="building"))
            raise error

    with pytest.raises(type(error)):
        break_off()
    assert text.getvalue().startswith(f"{sign} building")


@pytest.mark.parametrize("moving", [True, False])
def test_live_continues_when_its_reader_has_left(*, moving: bool) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", encoding="utf-8") as stream:
        out = Out(stream)
        with Live(out, colour=False, moving=moving) as live:
            show_logs(live)
            until(lambda: out.closed, "the loss of the reader")
            for event in list_events():
                live(event)
        live.show_tail("node1", 1)
    assert live.transcript(stages=5, logs=5)


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


def test_live_of_one_of_several_runs_shows_only_warnings() -> None:
    text = io.StringIO()
    with Live(Out(text), colour=False, moving=False, brief=True) as live:
        show_logs(live)
        live(Note(text="node1 is slow", level="warning"))
    assert text.getvalue() == "! node1 is slow\n"
