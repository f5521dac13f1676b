"""Following a run: invalid reports of a node, and the effect of a failure while torchrun may restart all ranks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.model.event import Event
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from gpucourse.remote import follow as following
from gpucourse.remote.agent import frames
from gpucourse.remote.agent.frames import frame
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.follow import FollowBroken, FollowResult
from gpucourse.remote.patience import PACE
from gpucourse.workspace.paths import RunPaths

NODE = Node(
    name="node0", role="head", address="h", port=1, private_address="", user="u", gpus=0, instance_type="", python="/p",
    mode="hosts", host_key="k",
)  # fmt: skip
END = frame(frames.END, payload=json.dumps({"code": 0, "reason": "exited", "seconds": 1.0, "killed": 0}).encode())


class Scripted:
    """A transport to one node that answers every `follow` with the same bytes. Implements ports.Transport and ports.Link."""

    node = NODE
    alive = True

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces = pieces
        self.asked = 0

    def connect(self, node: Node, *, timeout_s: float = 10.0, shared: str = "") -> Scripted:
        assert node == NODE
        assert timeout_s
        return self

    def run(self, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = 60.0) -> CommandResult:
        assert command
        assert timeout_s
        return CommandResult(code=0, stdout=b"", stderr=bytes(stdin) if isinstance(stdin, bytes) else b"")

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
        assert "follow" in command
        assert silence_s
        assert stdin == b""
        self.asked += 1
        yield iter(self.pieces)

    def close(self) -> None:
        self.alive = True


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    (tmp_path / "outside").mkdir()
    return RunPaths(tmp_path / "workspace/runs/3.2/run")


def follow(
    node: Scripted,
    paths: RunPaths,
    events: list[Event] | None = None,
    *,
    scheduled: bool = False,
    limit_s: float = 20.0,
    until: float | None = None,
    log_limit: int | None = None,
    hosts: set[str] | None = None,
    max_restarts: int = 0,
) -> FollowResult:
    journal: list[Event] = [] if events is None else events
    with Fleet(node, [NODE]) as fleet:
        job = following.FollowedJob(
            run_id="run", nodes=[NODE], paths=paths, log_limit=log_limit, world_size=2, max_restarts=max_restarts,
            scheduled=scheduled, hosts=hosts,
        )  # fmt: skip
        times = following.FollowTimes(limit_s=limit_s, until=until)
        return following.follow(fleet, job, journal.append, threading.Event(), times)


def name_frames(node: object, rank: object, stream: int = 0) -> bytes:
    return frame(frames.NAMED, stream, 0, json.dumps({"node": node, "rank": rank}).encode()) + frame(
        frames.LOG, stream, 0, b"x"
    )


def rank(fields: dict[str, object], number: int = 0) -> bytes:
    return frame(frames.RANK, 0, 0, json.dumps({"rank": number, **fields}).encode())


def end(fields: object) -> bytes:
    return frame(frames.END, 0, 0, json.dumps(fields).encode())


GOOD_END = {"code": 0, "reason": "exited", "seconds": 1.0, "killed": 0}
LIES = {
    "a frame of 4 GiB": frames.HEADER.pack(b"L", 1, 0, (1 << 32) - 1),
    "an unknown kind": frame(b"X"),
    "a log of a rank that was not started": name_frames("", 2),
    "the end of a rank on another node": rank({"code": 1, "at": 1.0, "node": "node1"}),
    "an offset ahead": name_frames("", 0, 1) + frame(frames.LOG, 1, 5, b"x"),
    "an offset behind": name_frames("", 0, 1) + frame(frames.LOG, 1, 0, b"yy"),
    "more logs than any run has": b"".join(frame(frames.LOG, number, 0) for number in range(3000)),
    "a log of another node without Slurm": name_frames("node1", 0),
    "no rank": rank({"code": 0, "at": 1.0}, -1),
    "an end that is no JSON": frame(frames.END, payload=b"not json"),
    "an end with a code of 2^70": end({**GOOD_END, "code": 1 << 70}),
    "an end of minus ten seconds": end({**GOOD_END, "seconds": -10}),
    "jobs that are none": end({**GOOD_END, "jobs": [1]}),
    "a rank's end without a time": rank({"code": 0}),
    "a rank's end at infinity": frame(frames.RANK, 0, 0, b'{"rank": 0, "code": 0, "at": 1e999}'),
    "a rank's end elsewhere": rank({"code": 0, "at": 1.0, "node": "../../x"}),
    "ten thousand ends of one rank": b"".join(rank({"code": 1, "at": float(number)}) for number in range(10_000)),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("lie", LIES)
def test_follow_asks_once_when_an_answer_cannot_be_used(paths: RunPaths, tmp_path: Path, lie: str) -> None:
    node = Scripted([LIES[lie], END])
    with pytest.raises(FollowBroken, match=r"^node0: .* cannot be used: ") as caught:
        follow(node, paths)
    assert node.asked == 1
    assert caught.value.exit_code == UnreachableError.exit_code
    assert str(caught.value).isprintable()
    assert list((tmp_path / "outside").iterdir()) == []
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} <= {paths.logs}


@pytest.mark.parametrize("host", ["../../../../outside/pwn", 7])
def test_follow_refuses_a_log_with_a_name_that_no_machine_has(paths: RunPaths, tmp_path: Path, host: object) -> None:
    with pytest.raises(FollowBroken, match="the name of a log cannot be used"):
        follow(Scripted([name_frames(host, 0), END]), paths, scheduled=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_follow_refuses_a_log_without_a_name_or_of_a_rank_that_was_not_started(paths: RunPaths) -> None:
    with pytest.raises(FollowBroken, match="there is no log 3"):
        follow(Scripted([frame(frames.LOG, 3, 0, b"x"), END]), paths, scheduled=True)
    with pytest.raises(FollowBroken, match="there is no rank 2: 2 were started"):
        follow(Scripted([name_frames("c1", 2), END]), paths, scheduled=True)


def test_follow_accepts_the_names_of_a_cluster(paths: RunPaths) -> None:
    follow(Scripted([name_frames("gpu-17.cluster.example", 1), name_frames("", None, 1), END]), paths, scheduled=True)
    assert {path.name for path in paths.logs.glob("*.log")} == {"gpu-17.cluster.example-rank1.log", "node0-launcher.log"}


def test_follow_accepts_only_nodes_of_the_lab(paths: RunPaths) -> None:
    hosts = {"node0", "node1", "node2"}
    follow(Scripted([name_frames("node2", 1), name_frames("node0", 0, 1), END]), paths, scheduled=True, hosts=hosts)
    with pytest.raises(FollowBroken, match="node3 is not a node of this lab"):
        follow(Scripted([name_frames("node3", 1), END]), paths, scheduled=True, hosts=hosts)
    assert {path.name for path in paths.logs.glob("*.log")} == {"node2-rank1.log", "node0-rank0.log"}


def test_follow_refuses_one_log_more_than_the_run_can_have(paths: RunPaths) -> None:
    logs = [name_frames(f"c{number}", 0, number) for number in range(10)]
    with pytest.raises(FollowBroken, match="this run can have at most 9 logs"):
        follow(Scripted([*logs, END]), paths, scheduled=True)
    assert len(list(paths.logs.glob("*.log"))) == 9


def test_is_over_grows_with_the_logs_but_not_beyond_until() -> None:
    assert not following.FollowTimes().is_over(1000.0, 0)
    times = following.FollowTimes(limit_s=0.0)
    assert times.is_over(1.0, 0)
    assert not times.is_over(1.0, 1000 * PACE)
    assert following.FollowTimes(limit_s=1000.0, until=time.monotonic()).is_over(0.0, 1000 * PACE)


def test_follow_gives_up_a_run_that_never_ends(paths: RunPaths) -> None:
    def beats() -> Iterator[bytes]:
        while True:
            time.sleep(0.01)
            yield frame(frames.BEAT)

    with pytest.raises(FollowBroken, match="has not ended there after"):
        follow(Scripted(beats()), paths, limit_s=0.5)
    with pytest.raises(FollowBroken, match="has not ended there after"):
        follow(Scripted(beats()), paths, limit_s=1000.0, until=time.monotonic() + 0.5)


CRASH = rank({"code": 9, "at": 10.0}, 1) + rank({"code": 1, "at": 10.1}, 0)


SECOND_LIFE = b"".join(rank({"code": 0, "at": 20.0, "restart": 1}, number) for number in (0, 1))


def test_follow_finds_no_failure_when_a_restarted_run_ends_well(paths: RunPaths) -> None:
    result = follow(Scripted([CRASH, SECOND_LIFE, END]), paths, max_restarts=2)
    assert result.restarts == 1
    assert result.first_failure is None
    assert not result.has_failed
    assert [(rank_exit.rank, rank_exit.restart, rank_exit.code) for rank_exit in result.rank_exits] == [
        (0, 0, 1), (0, 1, 0), (1, 0, 9), (1, 1, 0)
    ]  # fmt: skip


def test_follow_refuses_more_restarts_than_requested(paths: RunPaths) -> None:
    with pytest.raises(FollowBroken, match="its report on the end of a rank cannot be used: there can be no restart 1"):
        follow(Scripted([CRASH, SECOND_LIFE, END]), paths, max_restarts=0)
