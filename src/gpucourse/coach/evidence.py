"""The evidence that the coach reads: the end of every log, how every rank ended, and what was noticed during the run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property

from gpucourse.coach.words import LABEL, OF_SLURM, blank, blank_all_but_last_words, find_line
from gpucourse.model.diagnosis import LogQuote, Silence
from gpucourse.model.record import NodeExit

TAIL_BYTES = 1 << 16
"""The number of bytes read from the end of each log: a traceback through torch with C++ frames is up to 20 KB long."""

_SIGNALS = 128  # an exit code above 128 is 128 plus the number of the signal

_NOISE = re.compile(rf"^\s*{LABEL}")
_TORCH_RANK = re.compile(r"(?:\x1b\[[0-9;]*m)*(?:\[[A-Za-z]+\d+\]:|\d+: )?\[rank(\d+)\]:")
_SRUN_TASK = re.compile(r"(\d+): ")
_TRACEBACK = re.compile(r"^(\d+): Traceback \(most recent call last\)", re.MULTILINE)
_SOONER = 1e-6
"""The seconds added between the ends of ranks that share a log, because only the order of their lines is known."""


@dataclass(frozen=True, kw_only=True)
class Log:
    """The end of one log. `rank` is None for a launcher. `code` is None if the end of the process was not observed. `at` is the
    time of that end in seconds, on one clock for all ranks. `ended_by_us` is True if gpucourse ended the rank after another had
    failed."""

    node: str
    rank: int | None
    text: str
    code: int | None = None
    at: float | None = None
    ended_by_us: bool = False

    @property
    def chose_exit_code(self) -> bool:
        """Return whether the process chose its exit code: no signal is known to have ended it."""
        return not self.ended_by_us and (self.code is None or self.code < _SIGNALS)

    @cached_property
    def telling_text(self) -> str:
        """Return the text with the script's ordinary output replaced by blanks. The lines that may say how the process ended
        keep their positions."""
        return self.text if self.rank is None else blank_all_but_last_words(self.text, ended_itself=self.chose_exit_code)

    @property
    def last(self) -> str:
        """Return the last line that is not empty, ignoring the lines that srun writes about the end of a task."""
        lines = [line for line in map(_strip_rank_prefix, self.text.splitlines()) if line.strip()]
        return next((line for line in reversed(lines) if not OF_SLURM.match(line)), lines[-1] if lines else "")

    def quote(self, start: int) -> LogQuote:
        """Return the line of the log at this position in the text."""
        begin = self.text.rfind("\n", 0, start) + 1
        end = self.text.find("\n", start)
        line = self.text[begin : len(self.text) if end < 0 else end]
        place = find_line(self.telling_text[: begin + len(line)]) if self.rank is not None else ""
        return LogQuote(node=self.node, rank=self.rank, line=_strip_rank_prefix(line).strip()[:400], where=place)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One run that failed or was ended early.

    `planned` lists the ranks of each node. `silences` lists the ranks that had fallen silent. `skew_s` is how far each node's
    clock is ahead of this computer's. `lost` says why nodes cannot be reached. `typed` is the command line of the first node
    with its environment, or empty if unknown. `python` is the Python of each node, as far as it is known.
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
        """Return the number of ranks that were planned."""
        return sum(map(len, self.planned.values()))

    def rank(self, number: int) -> Log | None:
        """Return the log of that rank, or None if the rank never had a log."""
        return next((log for log in self.logs if log.rank == number), None)

    def node_of(self, number: int) -> str:
        """Return the node on which that rank was planned."""
        return next((node for node, ranks in self.planned.items() if number in ranks), "")

    def suspects(self) -> list[Log]:
        """Return the logs that may show a cause: first failed ranks, in the order in which they ended, then ranks whose end
        was not observed, then launchers.
        """
        failed_logs = [log for log in self.logs if log.code != 0]
        end_of_time = float("inf")
        return sorted(failed_logs, key=lambda log: (log.rank is None, end_of_time if log.at is None else log.at, log.rank or 0))


def _strip_rank_prefix(line: str) -> str:
    """Return a line without the `[rank1]: ` that torch puts before the lines of a traceback."""
    return _NOISE.sub("", line, count=1)


def split_shared_logs(evidence: Evidence) -> Evidence:
    """Return the evidence with each log that several ranks share split into one log per rank, in the order in which the ranks
    first appear.

    A line without a label is copied into each of these logs, because it may belong to any of the ranks.
    """
    return replace(evidence, logs=tuple(part for log in evidence.logs for part in _split(log)))


def _split(log: Log) -> list[Log]:
    if log.rank is None:
        return [log]
    lines = log.text.splitlines(keepends=True)
    label = _SRUN_TASK if _TRACEBACK.search(log.text) else _TORCH_RANK  # a script may print `3: `, too
    ranks = [int(match[1]) if (match := label.match(line)) else None for line in lines]
    distinct_ranks = list(dict.fromkeys(rank for rank in ranks if rank is not None))
    if len(distinct_ranks) < 2:
        return [log]
    return [
        replace(
            log,
            rank=rank,
            at=None if log.at is None else log.at + number * _SOONER,
            text="".join(line if owner in {rank, None} else blank(line) for line, owner in zip(lines, ranks, strict=True)),
        )
        for number, rank in enumerate(distinct_ranks)
    ]
