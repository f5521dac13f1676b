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
from gpucourse.model.event import Event, RankEvent, ignore_event
from gpucourse.model.node import Node
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


class _Silent(Answering):
    """A node that sends nothing until its connection is dropped, and counts who connects."""

    def __init__(self) -> None:
        super().__init__()
        self.connected, self.dropped = 0, threading.Event()

    def connect(self, _node: Node, *, timeout_s: float = 10.0) -> Answering:
        self.connected += 1
        return self

    @contextmanager
    def stream(self, _command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
        self.asked.append(stdin)
        assert self.dropped.wait(STUCK_S)
        raise UnreachableError("the connection was dropped")
        yield iter(())

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


def _leave_while_fetching(context: Context, record: RunRecord, node: Answering, *, connecting: bool = False) -> None:
    """Stop what fetches the outputs of a run once the node has been asked for them, or already `connecting`; it has ended."""
    with Fleet(node, [NODE]) as fleet:
        early = EarlyOutputs(context, fleet, record)
        if connecting:
            early._stopped.set()
        _end(early, {0: 0, 1: 0})
        until(lambda: node.asked)
        early.stop()
        assert early._thread is not None
        assert not early._thread.is_alive()


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


@pytest.mark.parametrize("changes", [{"launcher": "python"}, {"drill": True}, {"max_restarts": 1}])
def test_what_closes_at_once_is_broken_or_begins_again_is_left_to_finish(
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


def test_an_error_of_the_disk_is_left_to_finish(context: Context, record: RunRecord) -> None:
    """pytest reports an error that ends a thread."""
    node = _Failing()
    with Fleet(node, [NODE]) as fleet:
        early = EarlyOutputs(context, fleet, record)
        _end(early, {0: 0, 1: 0})
        until(lambda: node.asked)
        early.wait()


def test_whoever_leaves_stops_what_is_fetched_and_waits_for_its_end(context: Context, record: RunRecord) -> None:
    node = Answering(*[Parcel().finish()[:512]] * 1000)
    _leave_while_fetching(context, record, node, connecting=True)
    assert len(node.asked) == 1, "it is not tried again"


def test_a_node_that_sends_nothing_does_not_keep_whoever_leaves(context: Context, record: RunRecord) -> None:
    node = _Silent()
    _leave_while_fetching(context, record, node)
    assert node.connected == 1


def test_whoever_detaches_while_outputs_are_fetched_ends_that(context: Context, record: RunRecord) -> None:
    """Ranks that have ended well, and a person who detaches before the end of the run."""

    class Leaving(_Silent):
        @contextmanager
        def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
            if " follow " not in command:
                with super().stream(command, stdin=stdin) as pieces:
                    yield pieces
            else:
                ends = [frames.frame(frames.RANK, 1 + rank, 0, b'{"code": 0, "at": 1.0}') for rank in range(2)]
                yield self._leave_after(ends)

        def _leave_after(self, ends: list[bytes]) -> Iterator[bytes]:
            yield from ends
            until(lambda: self.asked)
            context.stop.set()

    record.nodes = [NODE.name]
    with Fleet(Leaving(), [NODE]) as fleet, pytest.raises(Interrupted, match="detached"):
        follow_to_end(context, fleet, record)
    assert "early-outputs" not in {thread.name for thread in threading.enumerate()}


def test_what_was_fetched_early_and_is_no_output_in_the_end_is_gone(context: Context, record: RunRecord) -> None:
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
def test_unchanged_outputs_are_not_asked_for_again(context: Context, record: RunRecord, told: str, asked_again: int) -> None:
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


def test_a_node_that_tells_no_digest_is_asked_again(context: Context, record: RunRecord) -> None:
    with Fleet(Answering(Parcel().add("files/kept").finish()), [NODE]) as fleet:
        early = EarlyOutputs(context, fleet, record, at_once_s=0.0)
        _end(early, {0: 0, 1: 0})
        until(lambda: early._collected)
        early.wait()
        assert early.take({"node0": ""}, ignore_event) is None
