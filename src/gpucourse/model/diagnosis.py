"""The failure coach's diagnosis of a run: which known symptom it shows, on which rank, in which lines, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class LogQuote:
    """A line of a log, unchanged; `rank` is None for the launcher of that node. `where` is the script's line that the preceding
    traceback points to, such as `train.py, line 12`; empty if there is no traceback."""

    node: str
    rank: int | None
    line: str
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """One symptom that was recognised.

    `symptom` is its stable word, `why` explains it in the words of the lesson, `next` is the command to type (or what to
    change, if no command does it), `ranks` and `nodes` are where it occurs, `seen` the lines by which it was recognised.
    """

    symptom: str
    title: str
    why: str
    next: str
    ranks: list[int] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    seen: list[LogQuote] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Silence:
    """A rank that was still running and had printed nothing for `seconds`. `doing` is what its process was seen doing:
    stopped, computing, waiting, not started, or empty if that could not be determined; `last` is its last line."""

    node: str
    rank: int
    seconds: float
    doing: str = ""
    last: str = ""
