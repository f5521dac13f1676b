"""Work in queues: order, needs, the moment of issue, and queues that wait for each other."""

from __future__ import annotations

import pytest

from tests.unit.exercises.scripts import beside_the_script

queues = beside_the_script("shared", "queues")
Work = queues.Work


def test_run_queues_keeps_the_order_of_each_queue_and_overlaps_different_queues() -> None:
    works = [Work("in", 2), Work("compute", 3, (0,)), Work("in", 2), Work("compute", 3, (2,)), Work("out", 1, (1,))]
    assert queues.run_queues(works) == [(0, 2), (2, 5), (2, 4), (5, 8), (5, 6)]


def test_run_queues_begins_nothing_before_it_is_issued() -> None:
    assert queues.run_queues([Work("in", 2, (), 5), Work("compute", 1, (0,), 1)]) == [(5, 7), (7, 8)]


def test_run_queues_takes_work_that_needs_later_issues_of_other_queues() -> None:
    assert queues.run_queues([Work("in", 1), Work("in", 1, (2,)), Work("compute", 4, (0,))]) == [(0, 1), (5, 6), (1, 5)]


def test_run_queues_does_work_without_length_at_once() -> None:
    assert queues.run_queues([Work("compute", 0), Work("compute", 0, (0,)), Work("in", 1, (1,))]) == [(0, 0), (0, 0), (0, 1)]


def test_run_queues_names_queues_that_wait_for_ever() -> None:
    with pytest.raises(ValueError, match="no queue can go on: in: work 0, compute: work 1"):
        queues.run_queues([Work("in", 1, (1,)), Work("compute", 1, (0,))])
