"""What the coach looks at: the end of every log, how every rank ended, and what was noticed on the way."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from gpucourse.coach.words import LABEL, OF_SLURM, blank_all_but_last_words, find_line
from gpucourse.model.diagnosis import LogQuote, Silence
from gpucourse.model.record import NodeExit

TAIL_BYTES = 1 << 16
"""How much of the end of each log is read: a traceback through torch with C++ frames takes up to 20 KB."""

_SIGNALS = 128  # an exit code above is 128 and the number of the signal

_NOISE = re.compile(rf"^\s*{LABEL}")


@dataclass(frozen=True, kw_only=True)
class Log:
    """The end of one log. `rank` is None for a launcher; `code` None if nobody saw it end; `at` orders the ends of
    ranks (seconds, one clock); `ended_by_us`: the rank did not end by itself, it was ended after another had failed."""

    node: str
    rank: int | None
    text: str
    code: int | None = None
    at: float | None = None
    ended_by_us: bool = False

    @property
    def chose_exit_code(self) -> bool:
        """Whether its process chose its exit code, as far as anybody saw: no signal ended it."""
        return not self.ended_by_us and (self.code is None or self.code < _SIGNALS)

    @cached_property
    def telling_text(self) -> str:
        """The text without what the script only printed on its way: what is left may say how it ended. Places are the same."""
        return self.text if self.rank is None else blank_all_but_last_words(self.text, ended_itself=self.chose_exit_code)

    @property
    def last(self) -> str:
        """The last line that says something; what srun says of a task's end comes after that."""
        lines = [line for line in map(strip_rank_prefix, self.text.splitlines()) if line.strip()]
        return next((line for line in reversed(lines) if not OF_SLURM.match(line)), lines[-1] if lines else "")

    def quote(self, start: int) -> LogQuote:
        """The line of the log that holds this place of the text."""
        begin = self.text.rfind("\n", 0, start) + 1
        end = self.text.find("\n", start)
        line = self.text[begin : len(self.text) if end < 0 else end]
        where = find_line(self.telling_text[: begin + len(line)]) if self.rank is not None else ""
        return LogQuote(node=self.node, rank=self.rank, line=strip_rank_prefix(line).strip()[:400], where=where)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One run that did not end well.

    `logs` holds the ranks and launchers that have a log; `planned` the ranks of every node; `silences` who had fallen
    silent; `skew_s` how far each node's clock is ahead of this computer's; `lost` why nodes are out of reach. `typed` is the
    command line of the first node with its environment, `python` the Python of each node; both are empty if nobody knows.
    """

    exercise: str
    module: str
    run: str
    state: str
    mode: str
    planned: dict[str, tuple[int, ...]]
    logs: tuple[Log, ...]
    node_exits: tuple[NodeExit, ...] = ()
    silences: tuple[Silence, ...] = ()
    skew_s: dict[str, float] | None = None
    lost: str = ""
    typed: str = ""
    python: dict[str, str] = field(default_factory=dict)

    @property
    def world_size(self) -> int:
        """How many ranks were planned."""
        return sum(map(len, self.planned.values()))

    def rank(self, number: int) -> Log | None:
        """The log of that rank; None if it never had one."""
        return next((log for log in self.logs if log.rank == number), None)

    def node_of(self, number: int) -> str:
        """The node that rank was planned on."""
        return next((node for node, ranks in self.planned.items() if number in ranks), "")

    def suspects(self) -> list[Log]:
        """The logs that may tell a cause: ranks that failed, in the order of their ends, those nobody saw end, launchers."""
        bad = [log for log in self.logs if log.code != 0]
        late = float("inf")
        return sorted(bad, key=lambda log: (log.rank is None, late if log.at is None else log.at, log.rank or 0))


def strip_rank_prefix(line: str) -> str:
    """A line without the `[rank1]: ` that torch puts before the lines of a traceback."""
    return _NOISE.sub("", line, count=1)
