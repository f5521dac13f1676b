"""Outputs are fetched once the last rank has ended well, while torchrun closes down; where it has closed already, only once."""

from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.model.event import RankEvent
from gpucourse.model.record import RunRecord
from gpucourse.remote.fleet import Fleet
from gpucourse.runs.early_outputs import EarlyOutputs
from tests.unit.runs.test_finish import EXERCISE, NODE, Answering, context, save_an_ended_run
from tests.waiting import STUCK_S, until

__all__ = ["context"]  # a fixture


class _Course:
    """A catalogue of one exercise."""

    def exercise(self, _number: str) -> tuple[None, object]:
        return None, EXERCISE


@pytest.fixture
def record(context: Context) -> RunRecord:
    vars(context)["catalog"] = _Course()
    record = save_an_ended_run(context, "20260101-000000-a", ranks=0, state="running")
    record.world_size = 2
    return record


def _end(early: EarlyOutputs, codes: dict[int, int]) -> list[RankEvent]:
    heard: list[RankEvent] = []
    tell = early.watch(heard.append)  # type: ignore[arg-type]  # it hears of nothing else
    for rank, code in codes.items():
        tell(RankEvent(node="node0", rank=rank, code=code))
    return heard


def test_they_are_fetched_while_the_run_still_closes_down(context: Context, record: RunRecord) -> None:
    node = Answering()
    with Fleet(node, [NODE]) as fleet:
        early = EarlyOutputs(context, fleet, record)
        assert len(_end(early, {0: 0, 1: 0})) == 2
        until(lambda: node.asked)
        early.wait()  # a node that sends no whole tar is no error here: `finish` asks it again


@pytest.mark.parametrize("codes", [{0: 0}, {0: 0, 1: 1}, {0: 0, 1: 143}])
def test_nothing_is_fetched_before_all_ranks_have_ended_well(
    context: Context,
    record: RunRecord,
    codes: dict[int, int],
) -> None:
    node = Answering()
    with Fleet(node, [NODE]) as fleet:
        early = EarlyOutputs(context, fleet, record)
        _end(early, codes)
        early.wait()
        assert early._thread is None
        assert not node.asked


def test_a_run_that_ended_at_once_is_asked_only_by_finish(
    context: Context,
    record: RunRecord,
) -> None:
    node = Answering()
    with Fleet(node, [NODE]) as fleet:
        early = EarlyOutputs(context, fleet, record, at_once_s=STUCK_S)
        _end(early, {0: 0, 1: 0})
        early.wait()
        assert not node.asked


@pytest.mark.parametrize("changes", [{"launcher": "python"}, {"drill": True}])
def test_what_closes_at_once_or_is_broken_on_purpose_is_left_to_finish(
    context: Context,
    record: RunRecord,
    changes: dict[str, object],
) -> None:
    for name, value in changes.items():
        setattr(record, name, value)
    with Fleet(Answering(), [NODE]) as fleet:
        early = EarlyOutputs(context, fleet, record)
        _end(early, {0: 0, 1: 0})
        assert early._thread is None
