"""Read my_service.yaml of 8.8: its values, its empty keys and its faults. The run and the judge use this."""

from __future__ import annotations

from collections.abc import Mapping

from decision_file import DecisionFile
from service_plans import MAX_BUDGET, MAX_ENGINES, MIN_BUDGET, PLAN_ROUTERS, RENTED, Plan
from slice_clock import FORMATS

PUZZLES = 99
NUMBERS = {"puzzle": (1, PUZZLES), "slices": (1, 8), "engines": (1, MAX_ENGINES), "budget": (MIN_BUDGET, MAX_BUDGET)}
WORDS = {"gpu": RENTED, "router": PLAN_ROUTERS, "format": tuple(FORMATS)}
KEYS = ("puzzle", "gpu", "slices", "engines", "pools", "budget", "router", "format", "reasons")
SIDES = ("prefill", "decode")


class ServiceFile(DecisionFile):
    """The content of my_service.yaml."""

    @property
    def plan(self) -> Plan | None:
        """Return the plan, or None if one of its keys is empty or wrong. `reasons` may be empty."""
        if not self.is_complete:
            return None
        values = self.values
        prefill = 0 if values["pools"] == "one" else values["pools"]["prefill"]
        return Plan(
            values["gpu"], values["slices"], values["engines"], prefill, values["budget"], values["router"], values["format"]
        )


def read_service(document: object) -> ServiceFile:
    """Return a service from the content of a YAML file.

    Faults are unknown keys, values of a wrong type or out of range, and pools that do not add up to the engines.
    """
    file = ServiceFile()
    file.read(document, KEYS, _find_fault, example="gpu: l4")
    pools, engines = file.values.get("pools"), file.values.get("engines")
    if isinstance(pools, Mapping) and engines is not None and sum(pools.values()) != engines:
        file.faults.append(f"pools: {pools['prefill']} and {pools['decode']} engines are not {engines}, the value of engines")
    return file


def _find_fault(key: str, value: object) -> str | None:
    if key in NUMBERS:
        low, high = NUMBERS[key]
        return (
            None
            if _is_count(value) and low <= value <= high
            else f"{key}: {value} is not a whole number from {low} to {high:,}"
        )  # type: ignore[operator]
    if key in WORDS:
        return None if value in WORDS[key] else f"{key}: {value} is not one of {', '.join(WORDS[key])}"
    if key == "pools":
        is_split = isinstance(value, Mapping) and set(value) == set(SIDES) and all(map(_is_count, value.values()))
        return None if value == "one" or is_split else f'pools: {value} is neither one nor "{{prefill: 1, decode: 3}}"'
    return None if isinstance(value, str) else f"{key}: {value} is not text"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
