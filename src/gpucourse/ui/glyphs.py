"""The few signs of the user interface, in Unicode if the terminal's encoding has them and in ASCII if it does not."""

from __future__ import annotations

from typing import NamedTuple


class Glyphs(NamedTuple):
    """Every sign that is not a letter. Each field is one column wide, except `arrow` and `ellipsis` in ASCII."""

    good: str = "✓"
    bad: str = "✗"
    error: str = "!"
    absent: str = "–"
    arrow: str = "→"
    ellipsis: str = "…"
    dot: str = "·"
    bullet: str = "•"
    rule: str = "─"
    bar_done: str = "━"
    bar_left: str = "─"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

    def mark(self, verdict: str) -> str:
        """Return the sign of a verdict: passed, failed or error; anything else is `not measured`."""
        return {"passed": self.good, "failed": self.bad, "error": self.error}.get(verdict, self.absent)


UNICODE = Glyphs()
ASCII = Glyphs(
    good="+",
    bad="x",
    error="!",
    absent="-",
    arrow="->",
    ellipsis="...",
    dot="-",
    bullet="*",
    rule="-",
    bar_done="#",
    bar_left=".",
    spinner="|/-\\",
)


# Other characters of this program and its course, for terminals that can show ASCII only.
TO_ASCII = str.maketrans(
    {old: new for old, new in zip(UNICODE, ASCII, strict=True) if len(old) == 1}
    | {"’": "'", "‘": "'", "“": '"', "”": '"', "—": "-", "×": "x", "±": "+-", "µ": "u", "\u00a0": " "}
)


def glyphs_for(encoding: str | None) -> Glyphs:
    """Return the signs that this encoding can write."""
    try:
        "".join(UNICODE).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE
