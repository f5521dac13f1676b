"""The coach's diagnosis of a run: the known symptom, the rank, the lines of the logs, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class LogQuote:
    """A line of a log, unchanged.

    `rank`: None for the launcher of that node.
    `where`: the line of the script that the traceback above names, such as `train.py, line 12`. It is empty without a
    traceback.
    """

    node: str
    rank: int | None
    line: str
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """One symptom that was recognised.

    `symptom`: its stable identifier.
    `why`: the explanation, in the words of the lesson.
    `next`: the command to type, or what to change if no command helps.
    `ranks` and `nodes`: where the symptom occurred.
    `seen`: the lines that show it.
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
    """A running rank that had printed nothing for `seconds`.

    `doing`: what its process was doing: stopped, computing, waiting or not started. It is empty if that is not known.
    `last`: the last line that it printed.
    """

    node: str
    rank: int
    seconds: float
    doing: str = ""
    last: str = ""
