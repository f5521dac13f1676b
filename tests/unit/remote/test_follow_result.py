"""How a run ended: which rank failed first, and whether it may start again."""

from __future__ import annotations

import pytest

from gpucourse.model.record import NodeExit, RankExit
from gpucourse.remote.follow import FollowResult


def test_first_failure_is_the_earliest_by_one_clock() -> None:
    ends = [RankExit(node="node0", rank=0, code=1, at=20.0), RankExit(node="node1", rank=1, code=9, at=25.0)]
    assert FollowResult(rank_exits=ends).first_failure == ends[0]
    assert FollowResult(rank_exits=ends, skew_s={"node1": 10.0}).first_failure == ends[1]
    assert FollowResult(rank_exits=ends, max_restarts=1).first_failure is None, "torchrun may restart them"


def test_first_failure_is_one_since_the_last_restart() -> None:
    ends = [RankExit(node="node0", rank=rank, code=9, at=10.0 - rank, restart=rank) for rank in (0, 1)]
    result = FollowResult(rank_exits=ends, max_restarts=1)
    assert (result.restarts, result.first_failure) == (1, ends[1])


def test_has_failed_if_a_launcher_gave_up() -> None:
    assert FollowResult(node_exits=[NodeExit(node="node0", code=1, reason="exited")], max_restarts=1).has_failed
    assert not FollowResult(node_exits=[NodeExit(node="node0", code=0, reason="exited")]).has_failed


def make_failed_result(restart: int, max_restarts: int) -> FollowResult:
    rank_exit = RankExit(node="node1", rank=1, code=9, at=1.0, restart=restart)
    return FollowResult(rank_exits=[rank_exit], max_restarts=max_restarts)


@pytest.mark.parametrize(
    ("restart", "max_restarts", "has_failed", "words"),
    [
        (0, 0, True, "rank 1 on node1 failed with exit code 9"),
        (0, 2, False, "rank 1 on node1 failed with exit code 9; torchrun starts all ranks again (restart 1 of 2)"),
        (1, 2, False, "rank 1 on node1 failed with exit code 9; torchrun starts all ranks again (restart 2 of 2)"),
        (2, 2, True, "rank 1 on node1 failed with exit code 9; no restart is left (2 of 2 used)"),
    ],
)
def test_describe_failure_says_whether_ranks_start_again(restart: int, max_restarts: int, has_failed: bool, words: str) -> None:
    result = make_failed_result(restart, max_restarts)
    assert result.has_failed is has_failed
    assert result.describe_failure(result.rank_exits[0]) == words
