"""The fewest GPUs for machines of several sizes, against brute force, and the numbers of 7.5's questions."""

from __future__ import annotations

import itertools

from tests.course import CATALOG
from tests.unit.exercises.scripts import beside_the_script

cases = beside_the_script("07-hpc-systems", "cases")


def test_gpus_needed_is_the_fewest_of_all_divisions() -> None:
    profiles = {2: 3, 3: 2, 6: 1}

    def fewest(demands: tuple[int, ...]) -> int:
        if not demands:
            return 0
        first, *tail = demands
        best = len(demands)
        for size, places in profiles.items():
            if size < first:
                continue
            fitting = [number for number, need in enumerate(tail) if need <= size]
            for count in range(min(places - 1, len(fitting)) + 1):
                for combination in itertools.combinations(fitting, count):
                    remainder = tuple(need for number, need in enumerate(tail) if number not in combination)
                    best = min(best, 1 + fewest(remainder))
        return best

    for needs in itertools.combinations_with_replacement([1, 2, 3, 5], 5):
        assert cases.gpus_needed(needs, profiles) == fewest(needs), needs


def test_numbers_of_the_questions_about_decisions_follow_from_the_rules() -> None:
    texts = {question.id: question.explanation or "" for question in CATALOG.exercise("7.5")[1].questions}
    gpus = {
        needs: cases.gpus_needed([*needs[:3], *[needs[3]] * 6], cases.PROFILES)
        for needs in ((17, 16, 16, 8), (17, 16, 16, 6), (17, 16, 12, 8), (16, 16, 16, 8))
    }
    assert list(gpus.values()) == [3, 3, 3, 2]
    switches = {ratio: cases.Network(72, 36, ratio).right() for ratio in (1, 2, 3)}
    assert switches == {1: (4, 2), 2: (3, 1), 3: (3, 1)}
    assert "with 27 cables up instead of 36" in texts["what-3-to-1-saves"]
    assert [switches[ratio][0] * (36 // (ratio + 1)) for ratio in (2, 3)] == [36, 27]
    today, less_often = (cases.Checkpoint(6 * 1024, 64, minutes * 60, 0.05, 2.0, 48) for minutes in (20, 24))
    assert today.right() is None
    stripes, _ = less_often.right()
    size = 6 * 2**40 / 1e9
    words = (f"{size:,.0f} GB", f"that takes {size / 60:.0f} GB/s", f"96: {size / 96:.1f} s, {100 * size / 96 / 1200:.1f} %",
             f"72 s: {size / 72:.1f} GB/s, {stripes} stripes")  # fmt: skip
    assert all(word in texts["too-large-a-file"] for word in words)
