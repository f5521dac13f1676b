"""Read a decision that a learner writes into a YAML file: its values, its empty keys and its faults."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

MIN_WORDS, MIN_DIFFERENT = 30, 20
"""Words that the reasons of a decision need, and how many of them have to differ."""


@dataclass
class DecisionFile:
    """The content of the file: `values` by key, the keys that are still `empty`, and `faults`, one sentence each."""

    values: dict[str, Any] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Return whether each key but `reasons` has a value, and none has a fault."""
        return not self.faults and set(self.empty) <= {"reasons"}

    @property
    def words(self) -> list[str]:
        """Return the words of the reasons, in lower case."""
        return str(self.values.get("reasons", "")).lower().split()

    def read(
        self,
        document: object,
        keys: Collection[str],
        find_fault: Callable[[str, object], str | None],
        *,
        example: str,
        optional: Collection[str] = (),
    ) -> None:
        """Take the values of `keys` and `optional` from the content of a YAML file. A key that does not exist, and a value in
        which `find_fault` finds a fault, are faults."""
        if not isinstance(document, Mapping):
            self.faults.append(f"it holds no keys with values, such as {example}")
            return
        all_keys = (*keys, *optional)
        self.faults += [
            f"{key}: there is no such key; the keys are {', '.join(all_keys)}" for key in document if key not in all_keys
        ]
        for key in all_keys:
            value = document.get(key)
            if value is None or value == "":
                self.empty += [key] if key in keys else []
            elif (fault := find_fault(key, value)) is not None:
                self.faults.append(fault)
            else:
                self.values[key] = value
