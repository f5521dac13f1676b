"""Following logs: every byte is stored here, whatever a log contains, however large it is, and whatever happens to the
connection.
"""

from __future__ import annotations

import hashlib
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.errors import StorageError, UnreachableError
from gpucourse.model.event import Event, LogBytes, Note
from gpucourse.remote import execute, follow
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.follow import FollowBroken
from gpucourse.remote.ssh import SshTransport
from tests.runs import Run, prepare
from tests.sshlab import Line, SshLab, find_marked_processes, on_openssh
from tests.system.test_remote_jobs import lab

__all__ = ["lab"]  # the fixture

pytestmark = pytest.mark.system

FLOOD = """
import hashlib, os, sys
block = b"".join(b"%07d a line of a log that is long enough to be one, or nearly so\\n" % n for n in range(16384))
digest = hashlib.md5()
for _ in range(int(sys.argv[1])):
    view = memoryview(block)
    while view:
        view = view[os.write(1, view):]
    digest.update(block)
open(os.environ["GPUCOURSE_OUT"] + "/md5", "w").write(digest.hexdigest())
"""

STEADY = """
import os, sys, time
for n in range(int(sys.argv[1])):
    sys.stdout.write("%06d %s\\n" % (n, "x" * (n % 97)))
    sys.stdout.flush()
    if n % 50 == 0: time.sleep(0.01)
    while str(n) in sys.argv[2:] and not os.path.exists("go"): time.sleep(0.01)
"""
"""Print so many lines; after that of the second number it waits to be told to go on."""


@pytest.fixture
def line(lab: SshLab) -> Iterator[Line]:
    line = Line(lab.nodes[0])
    yield line
    line.close()


def steady(count: int) -> bytes:
    return "".join(f"{n:06d} {'x' * (n % 97)}\n" for n in range(count)).encode()


def go_on(run: Run, *nodes: str) -> None:
    """Let STEADY print the rest."""
    for name in nodes:
        (run.folder(name) / "work" / "go").touch()


def finish(run: Run) -> None:
    execute.cancel(run.fleet, run.plan.run_id, 0.2)
    run.fleet.close()


@on_openssh
def test_follow_copies_a_large_log_exactly_in_flat_memory(lab: SshLab, tmp_path: Path) -> None:
    run = prepare(lab, tmp_path, FLOOD, "60", nodes=lab.nodes[:1])
    sizes: list[int] = []
    count = 0

    def watch(event: Event) -> None:
        nonlocal count
        if isinstance(event, LogBytes):
            count += len(event.data)
            sizes.append(_resident())

    execute.launch(run.fleet, run.plan, watch)
    baseline = _resident()
    result = follow.follow(run.fleet, run.job(), watch, run.stop)
    assert [e.code for e in result.node_exits] == [0]
    path = run.paths.rank_log("node0", 0)
    assert path.stat().st_size == count > 60_000_000
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "md5") if hasattr(hashlib, "file_digest") else hashlib.md5(file.read())
    assert digest.hexdigest() == (run.folder() / "outputs" / "md5").read_text()
    assert max(sizes) - baseline < 25 << 20, f"the client grew by {(max(sizes) - baseline) >> 20} MiB"
    finish(run)


@pytest.mark.slow
def test_follow_connects_again_when_the_line_is_silent(lab: SshLab, line: Line, tmp_path: Path) -> None:
    run = prepare(lab, tmp_path, STEADY, "3000", "1500", nodes=[line.node]).launch()
    impatient = Fleet(SshTransport(lab.key), [line.node], timeout_s=2.0)  # each attempt on the dead connection takes this long
    notes: list[Note] = []

    def watch(event: Event) -> None:
        if isinstance(event, LogBytes) and not line.holds and not notes:
            line.hold()
        if isinstance(event, Note):
            notes.append(event)
            line.cut()
            line.release()
            go_on(run, "node0")

    result = follow.follow(impatient, run.job(), watch, run.stop, follow.FollowTimes(silence_s=0.5))
    assert {note.level for note in notes} == {"warning"}
    assert run.log() == steady(3000)
    assert [e.code for e in result.node_exits] == [0]
    impatient.close()
    finish(run)


def test_follow_gives_up_on_a_node_that_does_not_return(lab: SshLab, line: Line, tmp_path: Path) -> None:
    run = prepare(lab, tmp_path, "import time; print('up'); time.sleep(3600)", nodes=[line.node, lab.nodes[1]]).launch()

    def watch(event: Event) -> None:
        if isinstance(event, LogBytes) and event.node == "node0":
            line.refuse()

    with pytest.raises(FollowBroken, match=r"1 of 2 nodes failed: node0: lost, .* for 0.5 s") as caught:
        follow.follow(run.fleet, run.job(), watch, run.stop, follow.FollowTimes(give_up_s=0.5))
    assert isinstance(caught.value, UnreachableError)
    assert "gpucourse logs" in caught.value.hint
    assert run.log() == b"up\n"
    assert find_marked_processes(run.folder()), "the run goes on where nobody can reach it"
    direct = Run(type(run.fleet)(run.fleet._transport, lab.nodes), run.plan, run.paths, lab)
    finish(direct)
    run.fleet.close()
    assert not find_marked_processes(run.folder())


def test_follow_continues_where_it_stopped(lab: SshLab, tmp_path: Path) -> None:
    run = prepare(lab, tmp_path, STEADY, "5000", "2500").launch()

    def let_go(event: Event) -> None:
        if isinstance(event, LogBytes) and len(run.log(1, "node1") if event.node == "node1" else b"") > 20_000:
            run.stop.set()

    first = follow.follow(run.fleet, run.job(), let_go, run.stop)
    assert first.detached
    assert 0 < len(run.log(1, "node1")) < len(steady(5000))
    go_on(run, "node0", "node1")
    run.stop.clear()
    run.events.clear()
    second_result = run.follow()
    assert not second_result.detached
    assert run.log(0, "node0") == run.log(1, "node1") == steady(5000)
    third = run.follow()  # an ended run can be followed again, and nothing is written twice
    assert {e.code for e in third.node_exits} == {0}
    assert run.log(0, "node0") == steady(5000)
    finish(run)


def test_run_continues_when_the_disk_here_is_full(lab: SshLab, tmp_path: Path) -> None:
    run = prepare(lab, tmp_path, FLOOD, "8", nodes=lab.nodes[:1]).launch()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    try:
        with pytest.raises(StorageError, match=r"no space left to write .*node0-rank0.log"):
            run.follow()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert run.paths.rank_log("node0", 0).stat().st_size == 2_000_000
    run.follow()
    assert hashlib.md5(run.log()).hexdigest() == (run.folder() / "outputs" / "md5").read_text()
    finish(run)


def _resident() -> int:
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_log_stays_within_its_limit_on_both_sides(lab: SshLab, tmp_path: Path) -> None:
    limit, copies = 1 << 20, 30  # of a block of 1 MiB
    run = prepare(lab, tmp_path, FLOOD, str(copies), nodes=lab.nodes[:1], log_limit=limit).launch()
    result = run.follow()
    assert [node_exit.code for node_exit in result.node_exits] == [0]
    assert [output.path for output in run.collect().outputs] == ["outputs/node0/md5"], "the script went on to its end"
    log_bytes = run.log()
    assert log_bytes[:limit] == (run.folder() / "logs/rank0.log").read_bytes()
    assert log_bytes[limit:].startswith(b"\n[gpucourse: node0-rank0.log reached its limit of 1.0 MiB")
    assert result.full_logs == ["node0-rank0.log"]
    assert sum("reached its limit" in event.text for event in run.events if isinstance(event, Note)) == 1
