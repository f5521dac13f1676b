"""The idle agent's decisions with a clock that the tests move, and its observations in a folder that replaces a node."""

from __future__ import annotations

import importlib.util
import json
import stat
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.waiting import STUCK_S

FILES = Path(__file__).parents[3] / "terraform" / "modules" / "node" / "files"
LIMIT_S = 1800.0
MINUTE_S = 60.0


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("idle_agent", FILES / "idle_agent.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


agent = _load()


class Clock:
    """A node that is observed once a minute. `at_rest`: the observations while nobody uses it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.view: Any = None
        self.at_rest = agent.Sight(now=self.now, boot="first", set_up=True, gpu_percent=0.0)

    def look(self, minutes: float = 1, **fields: Any) -> Any:
        """Observe the node once a minute for this long, always with the same result. Return the last view."""
        for _ in range(int(minutes)):
            self.now += MINUTE_S
            self.view = agent.decide(replace(self.at_rest, now=self.now, **fields), self.view, LIMIT_S)
            if self.view.end:
                break
        return self.view

    def minutes_to_the_end(self, **fields: Any) -> int:
        """Return how many more observations it takes until the node ends. Fail after ten hours."""
        for count in range(1, 600):
            if self.look(**fields).end:
                return count
        raise AssertionError("the node never ends")


@pytest.fixture
def clock() -> Clock:
    return Clock()


IN_USE = {
    "set-up": ({"set_up": False}, "the set-up is not over"),
    "installation": ({"installing": "downloading"}, "vLLM is being installed: downloading"),
    "run": ({"jobs": ("run 20261120-brave",)}, "run 20261120-brave"),
    "session": ({"ssh_sessions": 2}, "SSH sessions: 2"),
    "gpu": ({"gpu_percent": 5.0}, "GPU at 5%"),
    "another node": ({"others": ("node0",)}, "node0 is in use"),
    "hold": ({"hold_until": 1_900_000_000.0}, "held until 2030-03-17T17:46:40Z"),
}


def test_decide_ends_a_node_after_half_an_hour_of_rest(clock: Clock) -> None:
    first = clock.look()
    assert (first.idle_since, first.ends_at, first.busy) == (clock.now, clock.now + LIMIT_S, ())
    assert clock.look(29).ends_at == first.ends_at
    assert not clock.view.end
    view = clock.look()
    assert view.end
    assert view.now - view.idle_since == LIMIT_S


@pytest.mark.parametrize(("fields", "reason"), IN_USE.values(), ids=IN_USE)
def test_decide_ends_no_node_in_use_and_restarts_the_half_hour(clock: Clock, fields: dict[str, Any], reason: str) -> None:
    view = clock.look(24 * 60, **fields)
    assert (view.end, view.idle_since, view.ends_at) == (False, None, None)
    assert view.busy == (reason,)
    assert clock.minutes_to_the_end() == 31


@pytest.mark.parametrize("percent", [4.9, None], ids=["below five percent", "no answer"])
def test_decide_ends_a_node_whose_gpu_does_nothing_or_does_not_answer(clock: Clock, percent: float | None) -> None:
    assert clock.minutes_to_the_end(gpu_percent=percent) == 31


def test_decide_leaves_the_whole_half_hour_after_a_hold(clock: Clock) -> None:
    until = clock.now + 2 * 3600
    assert clock.minutes_to_the_end(hold_until=until) == 120 + 30  # the look at the very end of the hold counts as the first
    assert clock.now == until + LIMIT_S


def test_decide_restarts_the_half_hour_after_a_reboot(clock: Clock) -> None:
    clock.look(29)
    clock.at_rest = replace(clock.at_rest, boot="second")
    assert clock.minutes_to_the_end() == 31


@pytest.mark.parametrize(
    ("jump_s", "is_reset"),
    [(200, False), (3600, True), (-7200, True)],
    ids=["late by minutes", "nobody looked", "clock set back"],
)
def test_decide_counts_only_time_in_which_somebody_looked(clock: Clock, jump_s: int, is_reset: bool) -> None:
    since = clock.look(20).idle_since
    clock.now += jump_s
    view = clock.look()
    assert (view.end, view.idle_since) == (False, clock.now if is_reset else since)


# What it sees: a folder stands for the root of a node.


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("var/lib/gpucourse", "proc/net", "proc/sys/kernel/random", "opt/gpucourse"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("first\n")
    (tmp_path / "proc/net/tcp").write_text(HEADER)
    (tmp_path / "proc/net/tcp6").write_text(HEADER)
    return tmp_path


HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def row(local_port: int, state: str, remote_port: int = 50000) -> str:
    return f"   0: 0A014D0A:{local_port:04X} 077100CB:{remote_port:04X} {state} 00000000:00000000 00:00000000 00000000 0 0 1\n"


def test_ssh_sessions_counts_open_connections_to_the_server_alone(root: Path) -> None:
    listening, established, waiting = "0A", "01", "06"
    rows = [row(22, listening), row(22, established), row(22, waiting), row(40000, established, remote_port=22), "nonsense\n"]
    (root / "proc/net/tcp").write_text(HEADER + "".join(rows))
    (root / "proc/net/tcp6").write_text(HEADER + row(22, established) + row(8022, established))
    assert agent.Machine(root=str(root)).ssh_sessions() == 2


def test_course_jobs_finds_runs_by_their_mark(root: Path) -> None:
    environments = {
        "100": b"HOME=/home/ubuntu\0GPUCOURSE_RUN_DIR=/home/ubuntu/.gpucourse/jobs/20261120-brave\0",
        "101": b"GPUCOURSE_RUN_DIR=/home/ubuntu/.gpucourse/jobs/20261120-brave\0RANK=1\0",
        "102": b"NOT_GPUCOURSE_RUN_DIR=/elsewhere\0PATH=/usr/bin\0",
        "103": b"",
    }
    for pid, environment in environments.items():
        (root / "proc" / pid).mkdir()
        (root / "proc" / pid / "environ").write_bytes(environment)
    (root / "proc/104").mkdir()  # ended while it was looked at
    assert agent.Machine(root=str(root)).course_jobs() == ("run 20261120-brave",)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("installing {later} downloading several GB", "downloading several GB"),
        ("installing 1000 downloading", ""),  # its time is over
        ("", ""),
    ],
)
def test_read_installation_step_while_vllm_is_installed(root: Path, text: str, step: str) -> None:
    (root / "var/lib/gpucourse/vllm").write_text(text.format(later=int(time.time()) + 600))
    assert agent.Machine(root=str(root)).read_installation_step() == step


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("1900000000\n", 1.9e9),
        ("later", 0.0),
        ("nan", 0.0),
        ("-5", 0.0),
    ],
)
def test_hold_until_is_a_time_or_no_hold(root: Path, text: str, until: float) -> None:
    (root / "var/lib/gpucourse/hold").write_text(text)
    assert agent.Machine(root=str(root)).hold_until() == until


@pytest.mark.parametrize("mark", ["ready", "failed"])
def test_look_says_that_the_set_up_is_over(root: Path, mark: str) -> None:
    assert not agent.Machine(root=str(root)).look().set_up
    (root / "var/lib/gpucourse" / mark).touch()
    assert agent.Machine(root=str(root)).look().set_up


def test_remember_keeps_what_it_saw_unless_it_is_damaged(root: Path) -> None:
    machine = agent.Machine(root=str(root))
    assert machine.last_view() is None
    view = agent.View(1.8e9, "first", idle_since=1.8e9 - 60, ends_at=1.8e9 + 1740)
    machine.remember(view)
    last_view = machine.last_view()
    assert (last_view.now, last_view.boot, last_view.idle_since) == (view.now, view.boot, view.idle_since)
    state = json.loads((root / "var/lib/gpucourse/idle.json").read_text())
    assert state == {**asdict(view), "busy": [], "version": 1}
    for text in ("", "[]", "{}", '{"now": "x", "boot": "first", "idle_since": 1}'):
        (root / "var/lib/gpucourse/idle.json").write_text(text)
        assert machine.last_view() is None


# What it does: the program itself, with stand-ins for the programs that it asks.


class Node:
    """The agent as the timer runs it, in a folder. The outputs of stand-ins are given by name, and the end of the node is
    recorded.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        (root / "var/lib/gpucourse/ready").touch()
        self.program(root / "opt/gpucourse/end-node.sh", f'echo "$1" >>"{root}/ended"')

    def program(self, path: Path, body: str) -> None:
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def says(self, name: str, body: str) -> None:
        self.program(self.bin / name, body)

    def idle_for(self, seconds: float) -> None:
        """Pretend that the node has been observed all the time and has been idle for this long."""
        now = time.time()
        view = agent.View(now - 60, "first", idle_since=now - seconds)
        agent.Machine(root=str(self.root)).remember(view)

    def look(self, gpus: int = 1) -> dict[str, Any]:
        environment = {
            "GPUCOURSE_ROOT": str(self.root),
            "GPUS": str(gpus),
            "IDLE_SECONDS": "1800",
            "PATH": f"{self.bin}:/usr/bin:/bin",
        }
        subprocess.run([sys.executable, "-I", str(FILES / "idle_agent.py")], env=environment, check=True, timeout=STUCK_S)
        document: dict[str, Any] = json.loads((self.root / "var/lib/gpucourse/idle.json").read_text())
        return document

    @property
    def end_note(self) -> str:
        return (self.root / "ended").read_text() if (self.root / "ended").exists() else ""


@pytest.fixture
def node(root: Path) -> Node:
    return Node(root)


def test_agent_ends_the_node_when_it_is_time(node: Node) -> None:
    node.says("nvidia-smi", "echo 0; echo 3")
    node.idle_for(1700)
    assert node.look()["end"] is False
    assert node.end_note == ""
    node.idle_for(1801)
    assert node.look()["end"] is True
    assert node.end_note == "idle for 30 minutes: no job, no SSH session, no work on the GPU\n"


IN_PARTS = 'case "$1" in *gpu=*) echo "[N/A]" ;; *) {} ;; esac'
JOBS = "echo ' 7 gpu train ada R 5:00 1 node1'; echo ' 8 gpu train ada PD 0:00 1 (Resources)'"


@pytest.mark.parametrize(
    ("program", "body", "gpus", "busy"),
    [
        ("nvidia-smi", "echo 0; echo 80", 1, ["GPU at 80%"]),
        ("nvidia-smi", IN_PARTS.format("echo 4711"), 1, ["GPU at 100%"]),
        ("nvidia-smi", IN_PARTS.format("true"), 1, []),
        ("nvidia-smi", "echo 'NVIDIA-SMI has failed' >&2; exit 9", 1, []),
        ("squeue", JOBS, 0, ["jobs in the scheduler: 2"]),
    ],
    ids=["the busiest GPU", "a program on a GPU in parts", "a GPU in parts at rest", "a broken driver", "jobs"],
)
def test_agent_ends_a_node_at_rest_unless_a_program_shows_work(
    node: Node, program: str, body: str, gpus: int, busy: list[str]
) -> None:
    node.says(program, body)
    node.idle_for(1801)
    view = node.look(gpus)
    assert view["busy"] == busy
    assert bool(node.end_note) == view["end"] == (not busy)


def test_agent_does_not_ask_the_gpu_of_a_node_in_use(node: Node) -> None:
    node.says("nvidia-smi", f"touch {node.root}/asked; echo 99")
    (node.root / "proc/net/tcp").write_text(HEADER + row(22, "01"))
    assert node.look()["busy"] == ["SSH sessions: 1"]
    assert not (node.root / "asked").exists()


def test_agent_of_a_node_in_use_keeps_the_others_of_its_lab(tmp_path: Path) -> None:
    """Use a shell on node0 only. node1 learns of it through the shared folder, but does not pass it on."""
    lab, names = tmp_path / "shared" / "in-use", ("node0", "node1", "node2")
    at_work, at_rest, third = (agent.Machine(root=str(tmp_path / name), name=name, lab=str(lab)) for name in names)
    for name in names:
        (tmp_path / name / "proc").mkdir(parents=True)
        (tmp_path / name / "var/lib/gpucourse/ready").mkdir(parents=True)
    assert at_rest.look().others == ()
    (tmp_path / "node0/var/lib/gpucourse/hold").write_text("90000000000")
    now = at_work.look().now
    assert agent.reasons(at_rest.look()) == ("node0 is in use",)
    assert third.others_in_use(now) == ("node0",)
    assert third.others_in_use(now + 200.0) == (), "it has ended, or is at rest"
    (lab / "node0").write_text("whenever\n")
    assert at_rest.look().others == ()
