"""Outputs are fetched once the last rank has ended well, while torchrun closes down; where it has closed already, only once."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpucourse.context import Context
from gpucourse.errors import Interrupted, UnreachableError
from gpucourse.model.event import Event, RankEvent
from gpucourse.model.record import RunRecord
from gpucourse.remote.agent import frames
from gpucourse.remote.fleet import Fleet
from gpucourse.runs.early_outputs import EarlyOutputs
from gpucourse.runs.finish import _collect, fetch_early, remove_other_outputs
from gpucourse.runs.follow import follow_to_end
from gpucourse.workspace import runs
from tests.unit.remote.parcels import Parcel, everything
from tests.unit.runs.test_finish import EXERCISE, NODE, Answering, context, save_an_ended_run
from tests.waiting import STUCK_S, until

__all__ = ["context"]  # a fixture


class _Failing(Answering):
    """A node whose outputs find a disk here that fails."""

    @contextmanager
    def stream(self, _command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
        self.asked.append(stdin)
        raise OSError(errno.EIO, os.strerror(errno.EIO))
        yield iter(())


class _Leaving(Answering):
    """A node whose ranks end well and which sends no outputs until its connection is dropped; the person detaches meanwhile."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context, self.dropped = context, threading.Event()

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
        if " follow " in command:
            yield self._leave_after_the_ranks()
            return
        self.asked.append(stdin)
        assert self.dropped.wait(STUCK_S)
        raise UnreachableError("the connection was dropped")

    def _leave_after_the_ranks(self) -> Iterator[bytes]:
        yield from [frames.frame(frames.RANK, 1 + rank, 0, b'{"code": 0, "at": 1.0}') for rank in range(2)]
        until(lambda: self.asked)
        self.context.stop.set()

    def close(self) -> None:
        self.dropped.set()


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


@pytest.mark.parametrize(
    ("changes", "codes", "at_once_s"),
    [
        ({}, {0: 0}, 0.0),
        ({}, {0: 0, 1: 1}, 0.0),
        ({}, {0: 0, 1: 0}, STUCK_S),  # the run ends at once
        ({"launcher": "python"}, {0: 0, 1: 0}, 0.0),
        ({"drill": True}, {0: 0, 1: 0}, 0.0),
        ({"max_restarts": 1}, {0: 0, 1: 0}, 0.0),
    ],
)
def test_outputs_are_left_to_finish_if_ranks_fail_or_may_begin_again_or_the_run_ends_at_once(
    context: Context, record: RunRecord, changes: dict[str, object], codes: dict[int, int], at_once_s: float
) -> None:
    for name, value in changes.items():
        setattr(record, name, value)
    node = Answering()
    with Fleet(node, [NODE]) as fleet:
        early = EarlyOutputs(context, fleet, record, at_once_s=at_once_s)
        assert len(_end(early, codes)) == len(codes)
        early.wait()
        assert not node.asked


def test_error_of_the_disk_is_left_to_finish(context: Context, record: RunRecord) -> None:
    """pytest reports an error that ends a thread."""
    node = _Failing()
    with Fleet(node, [NODE]) as fleet:
        early = EarlyOutputs(context, fleet, record)
        _end(early, {0: 0, 1: 0})
        until(lambda: node.asked)
        early.wait()


def test_detaching_ends_the_fetching_of_outputs(context: Context, record: RunRecord) -> None:
    record.nodes = [NODE.name]
    with Fleet(_Leaving(context), [NODE]) as fleet, pytest.raises(Interrupted, match="detached"):
        follow_to_end(context, fleet, record)
    assert "early-outputs" not in {thread.name for thread in threading.enumerate()}


def test_file_that_was_fetched_early_and_is_no_output_in_the_end_is_removed(context: Context, record: RunRecord) -> None:
    files = runs.files_of(context.paths, record)
    sent = Parcel().add("files/metrics.json", b"{}").add("files/a/temporary").add("files/kept").finish()
    with Fleet(Answering(sent), [NODE]) as fleet:
        fetch_early(context, fleet, record, threading.Event())
    assert everything(files.outputs) == {"node0/metrics.json", "node0/a/temporary", "node0/kept"}
    sent = Parcel(left=[{"name": "metrics.json", "reason": "it is a link", "bytes": 0}]).add("files/kept", b"2").finish()
    with Fleet(Answering(sent), [NODE]) as fleet:
        digests = _collect(context, fleet, record, EXERCISE, files, None)
    remove_other_outputs(files, digests)
    assert everything(files.outputs) == {"node0/kept"}
    assert set(digests) == {"outputs/node0/kept"}


DIGEST = "0123"


@pytest.mark.parametrize(("told", "asked_again"), [(DIGEST, 0), ("4567", 1), ("", 1)])
def test_unchanged_outputs_are_not_fetched_again(context: Context, record: RunRecord, told: str, asked_again: int) -> None:
    files, node = runs.files_of(context.paths, record), Answering(Parcel(outputs=DIGEST).add("files/kept").finish())
    with Fleet(node, [NODE]) as fleet:
        early = EarlyOutputs(context, fleet, record, at_once_s=0.0)
        _end(early, {0: 0, 1: 0})
        until(lambda: early._collected)
        early.wait()
        heard: list[Event] = []
        taken = early.take({"node0": told}, heard.append)
        digests = _collect(context, fleet, record, EXERCISE, files, None, taken)
    assert set(digests) == {"outputs/node0/kept"}
    assert len(node.asked) == 1 + asked_again
    assert len(heard) == 1 - asked_again
