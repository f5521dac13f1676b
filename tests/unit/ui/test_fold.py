from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping

import pytest

from gpucourse.ui.fold import fold, label


def fold_logs(*logs: str) -> list[str]:
    return fold_pieces({rank: [text.encode()] for rank, text in enumerate(logs)})


def fold_pieces(logs: Mapping[int, Iterable[bytes]]) -> list[str]:
    text = "".join(fold(logs))
    assert not text or text.endswith("\n")
    return text.split("\n")[:-1]


@pytest.mark.parametrize(
    ("ranks", "output"),
    [([0], "[r0]"), ([3, 1, 2, 0], "[r0-3]"), ([0, 2, 3], "[r0,2-3]"), ([1, 3, 5], "[r1,3,5]"), ([9, 10, 11], "[r9-11]")],
)
def test_label_joins_ranks_to_ranges(ranks: list[int], output: str) -> None:
    assert label(ranks) == output


def test_fold_shows_equal_lines_once_and_others_by_rank() -> None:
    texts = [f"start\nI am rank {rank}\nepoch 1\nloss 0.{rank}\ndone\n" for rank in range(4)]
    assert fold_logs(*texts) == [
        "[r0-3] start",
        "[r0] I am rank 0",
        "[r1] I am rank 1",
        "[r2] I am rank 2",
        "[r3] I am rank 3",
        "[r0-3] epoch 1",
        "[r0] loss 0.0",
        "[r1] loss 0.1",
        "[r2] loss 0.2",
        "[r3] loss 0.3",
        "[r0-3] done",
    ]


def test_fold_of_a_rank_that_starts_later_or_stops_early() -> None:
    assert fold_logs("step 1\nstep 2\nstep 3\n", "step 2\nstep 3\n") == ["[r0] step 1", "[r0-1] step 2", "[r0-1] step 3"]
    assert fold_logs("a\nb\nc\n", "a\nTraceback\n") == ["[r0-1] a", "[r0] b", "[r1] Traceback", "[r0] c"]


def test_fold_accepts_pieces_that_end_anywhere() -> None:
    pieces = {0: [b"al", b"pha\nbe", b"ta"], 1: [b"alpha\n", b"beta\n"]}
    assert fold_pieces(pieces) == ["[r0-1] alpha", "[r0-1] beta"]
    assert fold_pieces({}) == []
    assert fold_pieces({0: [], 1: [b""]}) == []


def test_fold_reads_little_ahead_of_what_it_shows() -> None:
    blocks_read, rows = dict.fromkeys(range(4), 0), 0

    def read_blocks(rank: int) -> Iterator[bytes]:
        for block in range(40):
            blocks_read[rank] += 1
            steps = range(block * 500, block * 500 + 500)
            yield b"".join(b"step %d common\nstep %d of rank %d\n" % (step, step, rank) for step in steps)

    for text in fold({rank: read_blocks(rank) for rank in range(4)}):
        rows += text.count("\n")
        assert max(blocks_read.values()) * 500 * 5 - rows <= 2 * 500 * 5, "two blocks in memory, however many there are"
    assert rows == 40 * 500 * 5


def shuffle_lines(lines: list[str], ranks: int, within: int) -> list[str]:
    """Return a log for each rank, with these lines in a different order in each."""
    choices = random.Random(7)
    places = range(0, len(lines), within)
    return ["\n".join(line for at in places for line in choices.sample(lines[at : at + within], within)) for _ in range(ranks)]


@pytest.mark.parametrize(("ranks", "within"), [(2, 10), (8, 100)])
def test_fold_shows_every_line_when_the_order_differs(ranks: int, within: int) -> None:
    logs = shuffle_lines([f"step {number} of {number % 7}" for number in range(3000)], ranks, within)
    rank_lines: list[list[str]] = [[] for _ in range(ranks)]
    for line in fold_logs(*logs):
        name, _, text = line.partition("] ")
        for rank in [rank for rank in range(ranks) if label([rank]) == f"{name}]" or is_within(rank, name)]:
            rank_lines[rank].append(text)
    assert ["\n".join(lines) for lines in rank_lines] == logs


def is_within(rank: int, name: str) -> bool:
    """Return whether a label such as `[r0,2-4` contains the rank."""
    ranges = [part.split("-") for part in name.removeprefix("[r").split(",")]
    return any(int(part[0]) <= rank <= int(part[-1]) for part in ranges)
