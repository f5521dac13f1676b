"""Which ranks are reported as silent, when, and in which words. The tests set the clock."""

from __future__ import annotations

from gpucourse.model.diagnosis import Silence
from gpucourse.remote.silence import SilenceMonitor, sentences


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_silence_of_a_rank_is_named_once() -> None:
    clock = Clock()
    monitor = SilenceMonitor({"node0": (0,), "node1": (1,)}, 10.0, clock=clock)
    clock.now += 9.9
    monitor.note_output("node0", 0, b"step 1\nste")
    assert monitor.list_newly_silent() == []
    clock.now += 0.2
    silent = monitor.list_newly_silent()
    assert silent == [Silence(node="node1", rank=1, seconds=10.1)]
    monitor.remember(silent)
    assert monitor.list_newly_silent() == []
    clock.now += 10
    monitor.note_output("node0", 0, b"p 2\n\n")
    assert monitor.list_newly_silent() == []
    clock.now += 10
    silent = monitor.list_newly_silent()
    assert [(silence.rank, silence.last) for silence in silent] == [(0, "step 2")]
    monitor.remember(silent)
    monitor.note_output("node1", 1, b"here\n")
    clock.now += 10
    assert [silence.rank for silence in monitor.list_newly_silent()] == [1]


def test_silence_ends_when_a_rank_ends_or_writes() -> None:
    clock = Clock()
    monitor = SilenceMonitor({"node0": (0, 1), "node1": (2,)}, 10.0, clock=clock)
    clock.now += 11
    monitor.note_ended("node0", 0)
    ranks = monitor.list_newly_silent()
    assert [silence.rank for silence in ranks] == [1, 2]
    monitor.remember(ranks)
    monitor.note_output("node0", 1, b"back\n")
    assert [silence.rank for silence in monitor.list_remembered()] == [2]
    monitor.note_ended("node1")
    assert [silence.rank for silence in monitor.quiet(0)] == [1]


def test_sentences_put_waiting_ranks_last_and_count_the_rest() -> None:
    waiting = [Silence(node=f"node{rank}", rank=rank, seconds=30.2, doing="waiting") for rank in range(5)]
    silence = Silence(node="node9", rank=9, seconds=30.0, doing="stopped", last="step 3")
    lines = sentences([*waiting, silence])
    assert lines[0] == "rank 9 on node9 has printed nothing for 30 s; its process is stopped by a signal; its last line: step 3"
    assert lines[-1] == "2 more ranks have been silent for as long"
    assert len(lines) == 5
