"""Compare a part's values with the right values, and describe the difference: the input, the place, and an input that
passes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_SHORT = 100  # the maximum number of characters of a value that is shown in full
MAX_CHANGES = 3  # the maximum number of changes that are suggested to make an input pass
Knobs = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One input: its `name`, as shown to the learner; the part's value; the right value; and the values that mistakes give.

    `ways`: the value that each mistake gives, by the mistake's name, or by (name, form) if a mistake has several forms. A
    mistake that gives the right value for this input is left out.
    `values`: replacements for the names in the text of a mistake.
    `knobs`: the sizes and settings of this input, each under a readable name. If no mistake matches, the simplest failing
    input is shown next to the nearest passing input with the same knobs.
    """

    name: str
    given: Any
    right: Any
    ways: Mapping[Any, Any] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)
    knobs: Knobs = field(default_factory=dict)


def same(value: Any, reference: Any, tolerance: float) -> bool:
    """Return whether two values are equal. The difference of two numbers may be at most `tolerance` times the larger one;
    sequences, mappings and tensors are compared item by item."""
    value, reference = plain(value), plain(reference)
    if isinstance(reference, bool) or isinstance(value, bool) or reference is None:
        return value is reference
    if isinstance(reference, (int, float)):
        return isinstance(value, (int, float)) and _are_close(value, reference, tolerance)
    if isinstance(reference, Mapping):
        return (
            isinstance(value, Mapping)
            and value.keys() == reference.keys()
            and all(same(value[k], reference[k], tolerance) for k in reference)
        )
    if is_list(reference):
        if not is_list(value) or len(value) != len(reference):
            return False
        return all(
            same(element, reference_element, tolerance) for element, reference_element in zip(value, reference, strict=True)
        )
    return bool(value == reference)


def _are_close(value: float, reference: float, tolerance: float) -> bool:
    try:
        return math.isclose(value, reference, rel_tol=tolerance, abs_tol=1e-12)
    except OverflowError:  # an integer that is too large for a float
        return value == reference


def is_list(value: Any) -> bool:
    """Return whether a value is a sequence of values, but not text."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def plain(value: Any) -> Any:
    """Return a tensor or an array as nested lists, and a scalar of either as a number. Return everything else unchanged."""
    return value.tolist() if hasattr(value, "tolist") else value


def brief(value: Any) -> str:
    """Return a value as text of at most MAX_SHORT characters."""
    value = plain(value)
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_SHORT else f"{text[: MAX_SHORT - 3]}..."


def describe(value: Any, reference: Any, tolerance: float) -> str:
    """Return how a value differs from the right one: both values if they are short, otherwise the first difference."""
    value, reference = plain(value), plain(reference)
    if len(str(reference)) <= MAX_SHORT and len(str(value)) <= MAX_SHORT:
        return f"the result is {brief(value)} instead of {brief(reference)}"
    if is_list(value) and is_list(reference) and len(value) != len(reference):
        return f"the result has {len(value)} items, {brief(value)}, instead of {len(reference)}, {brief(reference)}"
    leaves = list(_walk(value, reference, ""))
    mistakes = [
        (place, element, reference_element)
        for place, element, reference_element in leaves
        if not same(element, reference_element, tolerance)
    ]
    if len(leaves) < 2 or not mistakes:
        return f"the result is {brief(value)} instead of {brief(reference)}"
    place, element, reference_element = mistakes[0]
    count = f"{len(mistakes)} of {len(leaves)} values are wrong"
    return f"{count}; the first is {place}: {brief(element)} instead of {brief(reference_element)}"


def _walk(value: Any, reference: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield each pair of corresponding values, with its place. If the shapes differ, yield the two values as they are."""
    if is_list(value) and is_list(reference) and len(value) == len(reference):
        for number, (element, reference_element) in enumerate(zip(value, reference, strict=True)):
            yield from _walk(element, reference_element, f"{place}[{number}]")
    elif isinstance(value, Mapping) and isinstance(reference, Mapping) and value.keys() == reference.keys():
        for key in reference:
            yield from _walk(value[key], reference[key], f"{place}[{key!r}]")
    else:
        yield place, value, reference


def find_simplest(knobs: Sequence[Knobs]) -> int:
    """Return the index of the simplest input, the one with the smallest sizes. If there are several, return the first."""
    places = _rank_values(knobs)
    return min(range(len(knobs)), key=lambda at: sum(places[name][value] for name, value in knobs[at].items()))


def describe_passing(failing_knobs: Knobs, passing: Sequence[Knobs]) -> str:
    """Return a sentence that says which change to the failing input makes it pass, or an empty string if that is not known."""
    candidates = [knobs for knobs in passing if knobs.keys() == failing_knobs.keys() and knobs != failing_knobs]
    if not candidates:
        return ""
    places = _rank_values([failing_knobs, *candidates])

    def list_changes(knobs: Knobs) -> tuple[str, ...]:
        return tuple(name for name in failing_knobs if knobs[name] != failing_knobs[name])

    def distance(knobs: Knobs) -> int:
        return sum(abs(places[name][knobs[name]] - places[name][failing_knobs[name]]) for name in list_changes(knobs))

    fewest = min(len(list_changes(knobs)) for knobs in candidates)
    nearest: dict[tuple[str, ...], Knobs] = {}  # the nearest input for each choice of knobs to change
    for knobs in sorted(candidates, key=distance):
        if len(list_changes(knobs)) == fewest:
            nearest.setdefault(list_changes(knobs), knobs)
    changes = [" and ".join(f"{name} = {brief(knobs[name])}" for name in names) for names, knobs in nearest.items()]
    return f". With {' or with '.join(changes[:MAX_CHANGES])} it is right"


def _rank_values(knobs: Sequence[Knobs]) -> dict[str, dict[Any, int]]:
    """Return the rank of each value among all values of its knob: numbers by size, other values in order of appearance."""
    values: dict[str, list[Any]] = {}
    for setting in knobs:
        for name, value in setting.items():
            if value not in values.setdefault(name, []):
                values[name].append(value)
    ordered = {
        name: sorted(items) if all(isinstance(item, (int, float)) for item in items) else items
        for name, items in values.items()
    }
    return {name: {value: place for place, value in enumerate(items)} for name, items in ordered.items()}
