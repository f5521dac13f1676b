"""A rank that fails while torchrun may start all ranks again is news; the verdict comes when nobody starts it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.model.event import Event, Note
from gpucourse.model.record import NodeExit, RankExit
from gpucourse.remote.agent import frames
from gpucourse.remote.agent.frames import frame
from gpucourse.remote.follow_result import FollowBroken, FollowResult
from gpucourse.workspace.paths import RunPaths
from tests.unit.remote.test_follow_untrusted import END, GOOD_END, Scripted, end, follow, rank

CRASH = rank({"code": 9, "at": 10.0}, stream=2) + rank({"code": 1, "at": 10.1}, stream=1)
SECOND_LIFE = b"".join(rank({"code": 0, "at": 20.0, "restart": 1}, stream=stream) for stream in (1, 2))
SECOND_CRASH = rank({"code": 9, "at": 20.0, "restart": 1}, stream=2) + rank({"code": 1, "at": 20.1, "restart": 1}, stream=1)


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return RunPaths(tmp_path / "run")


def test_follow_finds_no_failure_when_a_restarted_run_ends_well(paths: RunPaths) -> None:
    result = follow(Scripted([CRASH, SECOND_LIFE, END]), paths, max_restarts=2)
    assert result.restarts == 1
    assert result.first_failure is None
    assert not result.has_failed
    assert [(ended.rank, ended.restart, ended.code) for ended in result.rank_exits] == [
        (0, 0, 1), (0, 1, 0), (1, 0, 9), (1, 1, 0)
    ]  # fmt: skip


def test_follow_names_the_first_failure_when_no_restart_is_left(paths: RunPaths) -> None:
    result = follow(Scripted([CRASH, SECOND_CRASH, end({**GOOD_END, "code": 1})]), paths, max_restarts=1)
    assert result.restarts == 1
    assert result.first_failure == RankExit(node="node0", rank=1, code=9, at=20.0, restart=1)


def test_follow_refuses_more_restarts_than_requested(paths: RunPaths) -> None:
    with pytest.raises(FollowBroken, match="it was never restarted 1 times"):
        follow(Scripted([CRASH, SECOND_LIFE, END]), paths, max_restarts=0)


def make_failed_result(restart: int, max_restarts: int) -> FollowResult:
    ended = RankExit(node="node1", rank=1, code=9, at=1.0, restart=restart)
    return FollowResult(rank_exits=[ended], max_restarts=max_restarts)


@pytest.mark.parametrize(
    ("restart", "max_restarts", "has_failed", "words"),
    [
        (0, 0, True, "rank 1 on node1 failed with exit code 9"),
        (0, 2, False, "rank 1 on node1 failed with exit code 9; torchrun starts all ranks again (restart 1 of 2)"),
        (1, 2, False, "rank 1 on node1 failed with exit code 9; torchrun starts all ranks again (restart 2 of 2)"),
        (2, 2, True, "rank 1 on node1 failed with exit code 9; none of 2 restarts is left"),
    ],
)
def test_describe_failure_says_whether_ranks_start_again(restart: int, max_restarts: int, has_failed: bool, words: str) -> None:
    result = make_failed_result(restart, max_restarts)
    assert result.has_failed is has_failed
    assert result.describe_failure(result.rank_exits[0]) == words


def test_result_has_failed_when_the_launcher_gave_up() -> None:
    result = make_failed_result(0, 2)
    result.node_exits.append(NodeExit(node="node1", code=1))
    assert result.has_failed
    assert result.first_failure == result.rank_exits[0]


def test_follow_reports_a_crash_while_the_run_goes_on(paths: RunPaths) -> None:
    """The bytes after the crash come only once its sentence was told."""
    events: list[Event] = []

    def pieces() -> object:
        yield CRASH
        while not any(isinstance(event, Note) for event in list(events)):
            yield frame(frames.BEAT)
        yield SECOND_LIFE
        yield END

    follow(Scripted(pieces()), paths, events, max_restarts=1)  # type: ignore[arg-type]
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes == ["rank 1 on node0 failed with exit code 9; torchrun starts all ranks again (restart 1 of 1)"]
