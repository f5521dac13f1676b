"""The few signs that the user interface draws, and what replaces them if the terminal can show only ASCII."""

from __future__ import annotations

from typing import NamedTuple


class Glyphs(NamedTuple):
    """The signs that the user interface draws, other than letters. Each is one column wide."""

    good: str = "✓"
    bad: str = "✗"
    error: str = "!"
    absent: str = "–"
    arrow: str = "→"
    ellipsis: str = "…"
    dot: str = "·"
    bullet: str = "•"
    bar_done: str = "━"
    bar_left: str = "─"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

    def mark(self, verdict: str) -> str:
        """Return the sign for the verdict `passed`, `failed` or `error`. Other verdicts get the sign for `not measured`."""
        return {"passed": self.good, "failed": self.bad, "error": self.error}.get(verdict, self.absent)

    def frame(self, now: float) -> str:
        """Return the character of the spinner at the time `now`, in seconds."""
        return self.spinner[int(now * 8) % len(self.spinner)]


UNICODE = Glyphs()
ASCII_ELLIPSIS = "..."
TO_ASCII = str.maketrans(
    {"✓": "+", "✗": "x", "–": "-", "→": "->", "…": ASCII_ELLIPSIS, "·": "-", "•": "*", "━": "#", "─": "-"}
    | dict(zip(UNICODE.spinner, "|/-\\|/-\\|/", strict=True))
    | {"’": "'", "‘": "'", "“": '"', "”": '"', "—": "-", "×": "x", "±": "+-", "µ": "u", "\u00a0": " "}
)


def lacks_glyphs(encoding: str) -> bool:
    """Return whether this encoding cannot write the signs."""
    try:
        "".join(UNICODE).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return True
    return False
