"""Splitting one log of several ranks, as a batch job writes it, into one log for each rank, by the label before each line."""

from __future__ import annotations

import re
from dataclasses import replace

from gpucourse.coach.evidence import Evidence, Log

_TORCH = re.compile(r"(?:\x1b\[[0-9;]*m)*(?:\[[A-Za-z]+\d+\]:|\d+: )?\[rank(\d+)\]:")
_SRUN = re.compile(r"(\d+): ")
_TRACEBACK = re.compile(r"^(\d+): Traceback \(most recent call last\)", re.MULTILINE)
_SOONER = 1e-6
"""Seconds added between the ends of ranks that share a log: only the order of their lines is known."""


def part_shared_logs(evidence: Evidence) -> Evidence:
    """Return the evidence with one log for every rank that a shared log names; the rank whose lines begin first comes first.

    A line without a label may be from any of them, so all of them keep it.
    """
    return replace(evidence, logs=tuple(part for log in evidence.logs for part in _part(log)))


def _part(log: Log) -> list[Log]:
    if log.rank is None:
        return [log]
    lines = log.text.splitlines(keepends=True)
    label = _SRUN if _TRACEBACK.search(log.text) else _TORCH  # a script may print `3: ` too
    ranks = [int(match[1]) if (match := label.match(line)) else None for line in lines]
    named = list(dict.fromkeys(rank for rank in ranks if rank is not None))
    if len(named) < 2:
        return [log]
    return [
        replace(
            log,
            rank=rank,
            at=None if log.at is None else log.at + number * _SOONER,
            text="".join(line if whose in {rank, None} else _blank(line) for line, whose in zip(lines, ranks, strict=True)),
        )
        for number, rank in enumerate(named)
    ]


def _blank(line: str) -> str:
    body = line.rstrip("\r\n")
    return " " * len(body) + line[len(body) :]
