"""One symptom that shows in the text of a log: an entry of a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Weight = Literal["cause", "follows"]


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """One symptom. A `cause` explains a run by itself; a symptom that `follows` is printed by ranks that another failure
    affected. A `general` symptom counts only in a log that shows no more specific cause. `instead` is the next step if the
    command line of the run matches `followed`, which means that it already follows `next`."""

    word: str
    title: str
    signs: tuple[str, ...]
    why: str
    next: str
    followed: str = ""
    instead: str = ""
    weight: Weight = "cause"
    general: bool = False
    source: Literal["seen", "documented"] = "seen"

    def read_words(self, text: str) -> dict[str, str]:
        """Return what the named groups of all signs match in the text: the last sign that matches need not contain every
        group."""
        return {
            name: value
            for sign in self.signs
            for match in re.finditer(sign, text)
            for name, value in match.groupdict().items()
            if value
        }

    def search(self, text: str) -> re.Match[str] | None:
        """Return the last place where the text shows this symptom: the end of a log counts most."""
        last: re.Match[str] | None = None
        for sign in self.signs:
            for match in re.finditer(sign, text):
                last = match if last is None or match.start() > last.start() else last
        return last
