"""Collectives as rounds of messages: what they give, what they count, and their time, which is exact."""

from __future__ import annotations

from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def rounds() -> ModuleType:
    return beside_the_script("shared", "rounds")


@pytest.fixture(scope="module")
def algorithms() -> ModuleType:
    return beside_the_script("09-frontier-training", "algorithms")


def test_execute_uses_the_values_from_before_a_round(rounds: ModuleType) -> None:
    swap = [[rounds.Message(0, 1, 0, 2, False), rounds.Message(1, 0, 1, 2, True)]]
    assert rounds.execute(swap, [[1, 2], [10, 20]]) == [[1, 22], [1, 2]]


def test_count_and_count_crossing_take_the_sender(rounds: ModuleType) -> None:
    messages = [[rounds.Message(0, 1, 0, 5, True)], [rounds.Message(1, 2, 2, 5, True), rounds.Message(0, 3, 0, 1, False)]]
    assert rounds.count(messages, 4) == rounds.Count(2, [2, 1, 0, 0], [6, 3, 0, 0])
    assert rounds.count_crossing(messages, 2) == 4
    assert rounds.count_crossing(messages, 4) == 0


def test_clock_lasts_as_long_as_the_fullest_port_and_the_largest_latency(rounds: ModuleType) -> None:
    inside, between = rounds.Link(1, Fraction(1)), rounds.Link(10, Fraction(2))
    both = [[rounds.Message(0, 2, 0, 3, True), rounds.Message(1, 3, 0, 4, True), rounds.Message(2, 3, 0, 5, True)]]
    assert rounds.clock(both, 2, inside, between) == 10 + 2 * 4 + 5, "rank 3 receives twice"
    assert rounds.clock(both, 2, inside, between, shared_card=True) == 10 + 2 * (3 + 4)
    assert rounds.clock([[]], 2, inside, between) == 0


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("rounds", "rounds are a list of lists of Message, not str"),
        ([5], "round 0 is a list of Message, not int"),
        ([[(0, 1)]], "is not a Message"),
        ([[], [(0, 1, 0, 2.0, True)]], "round 1: .* needs four whole numbers and True or False"),
        ([[(0, 4, 0, 2, True)]], "between ranks that do not exist: there are 4"),
        ([[(1, 1, 0, 2, True)]], "from a rank to itself"),
        ([[(0, 1, 3, 2, True)]], "numbers that do not exist: there are 8"),
        ([[(0, 1, 0, 9, True)]], "numbers that do not exist: there are 8"),
        ([[(0, 1, 0, 1, True)] * 200_001], "more than 200,000 messages up to round 0"),
    ],
)
def test_check_names_the_round_of_what_is_no_message(rounds: ModuleType, messages: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        rounds.check(messages, 4, 8)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("numbers", [16, 101])
def test_algorithms_give_every_rank_the_sum(rounds: ModuleType, algorithms: ModuleType, ranks: int, numbers: int) -> None:
    values = [[(rank + 1) * (place + 1) for place in range(numbers)] for rank in range(ranks)]
    sums = [sum(column) for column in zip(*values, strict=True)]
    for name, make in algorithms.ALGORITHMS.items():
        result = rounds.execute(rounds.check(make(ranks, numbers), ranks, numbers), values)
        assert all(row == sums for row in result), name


@pytest.mark.parametrize("ranks", [2, 4, 8, 64])
def test_clock_equals_the_formulas_exactly(rounds: ModuleType, algorithms: ModuleType, ranks: int) -> None:
    latency, per_number, numbers = Fraction(7), Fraction(1, 3), 3 * ranks
    link, levels = rounds.Link(latency, per_number), ranks.bit_length() - 1
    share = Fraction(2 * (ranks - 1), ranks)
    formulas = {
        "ring": 2 * (ranks - 1) * latency + share * numbers * per_number,
        "doubling": levels * (latency + numbers * per_number),
        "tree": 2 * levels * (latency + numbers * per_number),
    }
    for name, formula in formulas.items():
        assert rounds.clock(algorithms.ALGORITHMS[name](ranks, numbers), 1, link, link) == formula, name
