"""What a symptom is that shows in the words of a log: an entry of a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Weight = Literal["cause", "follows"]


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """One symptom. A `cause` explains a run by itself; what `follows` is said by the victims of something else. What is
    `general` counts only in a log that shows no cause which says more. `instead` is the next step where `next` was followed
    already: `followed` is what shows that, in what was typed for the run."""

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
        """What the named groups of all signs match in the text: the sign that was found last need not hold every one."""
        return {
            name: value
            for sign in self.signs
            for match in re.finditer(sign, text)
            for name, value in match.groupdict().items()
            if value
        }

    def search(self, text: str) -> re.Match[str] | None:
        """The last place where the text shows this symptom: the last words of a log weigh most."""
        last: re.Match[str] | None = None
        for sign in self.signs:
            for match in re.finditer(sign, text):
                last = match if last is None or match.start() > last.start() else last
        return last
