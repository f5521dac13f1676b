"""Messages about a wrong value: where it differs, on the simplest input that fails, and the nearest input that passes."""

from __future__ import annotations

from gpucourse.judge.cases import describe, describe_passing, find_simplest, same


def test_describe_shows_short_values_whole() -> None:
    assert describe([1, 2], [1, 3], 1e-9) == "the result is [1, 2] instead of [1, 3]"


def test_same_compares_an_integer_that_is_too_large_for_a_float() -> None:
    assert not same(10**400, 5, 1e-9)
    assert same(10**400, 10**400, 1e-9)


def test_describe_names_the_first_place_that_differs() -> None:
    reference = {"weights": [float(number) for number in range(200)]}
    values = {"weights": [number + (number > 197) for number in reference["weights"]]}
    assert describe(values, reference, 1e-9) == ("2 of 200 values are wrong; the first is ['weights'][198]: 199 instead of 198")


def test_describe_counts_items_when_some_are_missing() -> None:
    text = describe(list(range(60)), list(range(80)), 1e-9)
    assert text.startswith("the result has 60 items, [0, 1, 2,")
    assert ", instead of 80, [0, 1, 2," in text


def test_find_simplest_chooses_the_smallest_sizes() -> None:
    assert find_simplest([{"ranks": 4, "elements": 9}, {"ranks": 2, "elements": 9}, {"ranks": 4, "elements": 4}]) == 1
    assert find_simplest([{}, {}]) == 0


def test_describe_passing_changes_as_few_sizes_as_possible() -> None:
    sizes = {"ranks": 4, "elements": 9}
    passing = [{"ranks": 2, "elements": 2}, {"ranks": 4, "elements": 4}, {"ranks": 4, "elements": 8}]
    assert describe_passing(sizes, passing) == ". With elements = 8 it is right"
    assert describe_passing(sizes, passing[:1]) == ". With ranks = 2 and elements = 2 it is right"
    assert describe_passing(sizes, []) == describe_passing({}, [{}]) == ""
