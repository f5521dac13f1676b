from __future__ import annotations

import pytest

from gpucourse.ui.log_ahead import LONGEST, Ahead, label


@pytest.mark.parametrize(
    ("ranks", "shown"),
    [([0], "[r0]"), ([3, 1, 2, 0], "[r0-3]"), ([0, 2, 3], "[r0,2-3]"), ([1, 3, 5], "[r1,3,5]"), ([9, 10, 11], "[r9-11]")],
)
def test_label_joins_ranks_to_ranges(ranks: list[int], shown: str) -> None:
    assert label(ranks) == shown


def read_lines(log: Ahead) -> list[bytes]:
    lines = []
    while log.line is not None:
        lines.append(log.line)
        log.advance(1)
    return lines


def test_ahead_breaks_a_line_without_an_end() -> None:
    lines = read_lines(Ahead({0: iter([b"x" * 50_000] * 4)}, []))
    assert (sum(map(len, lines)), max(map(len, lines))) == (200_000, LONGEST)


def test_ahead_of_ranks_that_begin_to_differ_becomes_several_logs() -> None:
    logs: list[Ahead] = []
    Ahead({rank: iter([b"same\n", b"own %d\n" % rank]) for rank in (0, 1)}, logs)
    assert [(log.ranks, read_lines(log)) for log in logs] == [((0,), [b"same", b"own 0"]), ((1,), [b"same", b"own 1"])]
