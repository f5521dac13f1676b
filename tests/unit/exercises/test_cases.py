"""The fewest GPUs for machines of several sizes, against brute force."""

from __future__ import annotations

import itertools

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
