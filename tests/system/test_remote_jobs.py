"""Runs on real nodes: how they start and end, how they are stopped, and that nothing of them is left."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpucourse.errors import GpucourseError
from gpucourse.model.event import NodeEvent
from gpucourse.remote import execute, jobs
from gpucourse.remote.execute import _spec  # a retried start sends these again
from gpucourse.remote.push import parcels, push
from tests.runs import Run, prepare
from tests.sshlab import SshLab, find_marked_processes, on_openssh, ssh_lab
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system

Make = Callable[..., Run]

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
stopped = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
os.kill(stopped.pid, signal.SIGSTOP)
print("up", flush=True)
time.sleep(300)
"""


HIDES = """
import glob, subprocess, sys, time
words = ["env", "-i", "setsid", "sleep", "{seconds}"]
subprocess.Popen(words, start_new_session=True)

def read(file):
    try:
        return open(file, "rb").read()
    except OSError:
        return b""

while not any(read(file).split(b"\\0")[:2] == [b"sleep", b"{seconds}"] for file in glob.glob("/proc/[0-9]*/cmdline")):
    time.sleep(0.01)
time.sleep(60 if "stay" in sys.argv else 0)
"""


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    kind = getattr(request, "param", "simulated")
    with ssh_lab(kind, tmp_path_factory.mktemp(kind), 2) as lab:
        yield lab


@pytest.fixture
def make(lab: SshLab, tmp_path: Path) -> Iterator[Make]:
    calls: list[Run] = []

    def prepare_run(script: str, *arguments: str, **options: object) -> Run:
        calls.append(prepare(lab, tmp_path, script, *arguments, **options))  # type: ignore[arg-type]
        return calls[-1]

    yield prepare_run
    for run in calls:
        execute.cancel(run.fleet, run.plan.run_id, 0.2)
        for node in run.plan.nodes:
            assert not find_marked_processes(run.folder(node.name)), "processes of the run are left"
        run.fleet.close()


@on_openssh
def test_run_on_two_nodes_runs_to_its_end(make: Make, lab: SshLab) -> None:
    script = "import os, sys; print('rank', os.environ['RANK'], sys.argv[1:], os.getcwd()); print('oops', file=sys.stderr)"
    run = make(script, "--name", "a b", "$(id)\n'\"").launch()
    result = run.follow()
    for rank, name in enumerate(("node0", "node1")):
        work = lab.homes[name] / ".gpucourse" / "jobs" / run.plan.run_id / "work"
        arguments = ["--name", "a b", "$(id)\n'\""]
        assert run.log(rank, name).decode() == f"rank {rank} {arguments} {work}\noops\n"
        assert run.collect_log(name, rank) == run.log(rank, name)
        assert not run.paths.rank_log(name, None).exists()
    assert sorted((e.node, e.code, e.reason, e.killed) for e in result.node_exits) == [
        ("node0", 0, "exited", 0), ("node1", 0, "exited", 0)
    ]  # fmt: skip
    assert sorted((e.node, e.rank, e.code) for e in result.rank_exits) == [("node0", 0, 0), ("node1", 1, 0)]
    assert result.first_failure is None
    assert not result.detached
    steps = [(e.node, e.step, e.ok) for e in run.events if isinstance(e, NodeEvent)]
    assert sorted(steps) == [(n, s, True) for n in ("node0", "node1") for s in ("push", "start")]


@on_openssh
def test_script_has_default_signals_no_terminal_and_no_input(make: Make) -> None:
    script = (
        "import os, signal, sys\n"
        "told = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)\n"
        "ignored = [s for s in told if signal.getsignal(s) is signal.SIG_IGN]\n"
        "print([s.name for s in ignored], sys.stdin.read() == '', os.isatty(1), len(os.listdir('/proc/self/fd')) <= 5)\n"
    )
    run = make(script).launch()
    run.follow()
    # Python itself ignores SIGPIPE when it starts
    assert run.log() == b"['SIGPIPE'] True False True\n"


@on_openssh
def test_follow_ends_the_others_after_the_grace_when_a_rank_fails(make: Make) -> None:
    script = "import os, sys, time\nif os.environ['RANK'] == '1': print('boom'); sys.exit(3)\ntime.sleep(3600)"
    run = make(script).launch()
    result = run.follow(grace_s=0.5)
    exits = {e.node: e for e in result.node_exits}
    assert (exits["node1"].code, exits["node1"].reason) == (3, "exited")
    assert exits["node0"].reason == "cancelled"
    assert exits["node0"].code == 143
    assert result.first_failure is not None
    assert (result.first_failure.node, result.first_failure.rank, result.first_failure.code) == ("node1", 1, 3)
    assert run.log(1, "node1") == b"boom\n"


def test_node_keeps_the_deadline_without_a_client(make: Make, lab: SshLab) -> None:
    shell = "trap '' TERM; setsid sleep 300 & setsid sleep 300 & sleep 300"
    run = make(shell, nodes=lab.nodes[:1], argv=("{rank}", "/bin/sh", "script.py"), timeout_s=1.5)
    spec = {**_spec(run.plan, run.plan.commands[0], parcels(run.plan.uploads), None), "grace_s": 0.3}
    link = run.fleet.link(lab.nodes[0])
    push(link, parcels(run.plan.uploads))
    jobs.start(link, spec)
    run.fleet.close()
    until((run.folder() / "done").exists, "the node ends the run")
    assert not find_marked_processes(run.folder())
    (node_exit,) = run.follow().node_exits
    assert node_exit.reason == "timed_out"
    assert node_exit.seconds is not None
    assert node_exit.seconds >= 1.5


@on_openssh
def test_cancel_ends_stubborn_stopped_and_detached_processes(make: Make) -> None:
    run = make(STUBBORN).launch()
    until(lambda: all(len(find_marked_processes(run.folder(n))) >= 4 for n in ("node0", "node1")), "all processes are up")
    outcomes = execute.cancel(run.fleet, run.plan.run_id, 0.5)
    assert [outcome.take() for outcome in outcomes] == ["ended", "ended"]
    assert not find_marked_processes(run.folder("node0"))
    assert not find_marked_processes(run.folder("node1"))
    assert all(outcome.take() == "ended" for outcome in execute.cancel(run.fleet, run.plan.run_id, 0.5))
    assert {e.reason for e in run.follow().node_exits} == {"cancelled"}


def test_cancel_lets_a_script_tidy_up_and_signals_it_once(make: Make, lab: SshLab) -> None:
    script = (
        "import signal, sys, time\n"
        "def tidy(*_):\n    print('tidying'); time.sleep(0.5); print('tidy'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, tidy)\nprint('up')\ntime.sleep(60)\n"
    )
    run = make(script, nodes=lab.nodes[:1]).launch()
    log = run.folder() / "logs" / "rank0.log"
    until(lambda: log.exists() and log.read_bytes() == b"up\n", "the script is up")
    execute.cancel(run.fleet, run.plan.run_id, STUCK_S)
    assert [(e.reason, e.code) for e in run.follow().node_exits] == [("cancelled", 143)]
    assert run.log() == b"up\ntidying\ntidy\n"


def test_run_ends_processes_that_hide_their_environment_and_session(make: Make, lab: SshLab) -> None:
    seconds = f"300.{os.getpid()}{lab.nodes[0].port}"
    script = HIDES.format(seconds=seconds)

    def is_hidden() -> bool:
        return any(seconds.encode() in _command(entry).split(b"\0")[1:2] for entry in Path("/proc").glob("[0-9]*"))

    run = make(script, nodes=lab.nodes[:1]).launch()
    (node_exit,) = run.follow().node_exits
    assert (node_exit.code, node_exit.killed) == (0, 1)
    assert not is_hidden()
    run = make(script, "stay", nodes=lab.nodes[:1]).launch()
    until(is_hidden, "the hidden process is up")
    execute.cancel(run.fleet, run.plan.run_id, 0.5)
    assert not is_hidden()


def test_launch_ends_the_other_node_when_one_cannot_start(make: Make, lab: SshLab) -> None:
    run = make("import time; time.sleep(300)")
    blocked = run.folder("node1")
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("in the way")
    with pytest.raises(GpucourseError, match="1 of 2 nodes failed: node1"):
        run.launch()
    assert not find_marked_processes(run.folder("node0"))
    failures = [e for e in run.events if isinstance(e, NodeEvent) and not e.ok]
    assert [(e.node, e.step) for e in failures] == [("node1", "start")]
    blocked.unlink()


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
