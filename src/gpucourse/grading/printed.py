"""Checks that the metrics of a run are what its ranks printed: every value that the manifest names is searched for in the logs.

A script prints what it measured before it writes metrics.json. One that was edited to write only the numbers prints nothing, or
something else. Both files come from the learner's computer: this finds numbers without a run behind them, not a run that was
made up as a whole.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpucourse.grading.values import NOT_FINITE, Unreadable, read
from gpucourse.model.check import LogEvidence
from gpucourse.model.fields import is_number

OWN_RANK = "rank"
"""The key of a line for the number of the rank that printed it, whether its row has that key or not."""
LONGEST_LINE = 2000
"""How many characters of a line are read: no script of a course prints longer ones."""
MOST_COMPARED = 2_000_000
"""The most rows of the metrics times rows of the logs: a bundle from outside must not take minutes."""

_PLACE = re.compile(r"\{([a-z0-9_.]*)\}")
_RULE = re.compile(r"-+(?:  -+)*")
_PRINTED_NUMBER = re.compile(r"[-+]?\d+(?:\.(?P<decimals>\d+))?(?:[eE](?P<exponent>[-+]?\d+))?")
_SLACK = 0.51  # units of the last printed digit: rounding changes at most half of one
_GRAIN = 1e-9  # relative: the rounding of binary fractions
_WAYS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean, "min": min, "max": max, "sum": math.fsum,
}  # fmt: skip
_PREFIX = re.compile(r"rank \d+: ")


@dataclass(frozen=True)
class RankLog:
    """The output of one rank, line by line; `rank` is None for the transcript of a session."""

    rank: int | None
    lines: tuple[str, ...]


@dataclass(frozen=True)
class _Values:
    """The values in one line, or in one row of a table: the text for each key, and the rank that printed it."""

    rank: int | None
    texts: Mapping[str, str]


def split_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a log without their ends; a line longer than any line of a script is cut."""
    return tuple(line[:LONGEST_LINE].rstrip() for line in text.splitlines())


def find_differences(wanted: Sequence[LogEvidence], metrics: Mapping[str, object], logs: Sequence[RankLog]) -> Iterator[str]:
    """Yield how the logs contradict the metrics, a sentence for each entry of the manifest that does not match."""
    for entry in wanted:
        if (sentence := _find_difference(entry, metrics, logs)) is not None:
            yield sentence


def _find_difference(entry: LogEvidence, metrics: Mapping[str, object], logs: Sequence[RankLog]) -> str | None:
    rows = _read_rows(entry, metrics)
    if isinstance(rows, str):
        return None if entry.optional or _is_empty_table(entry, metrics, logs) else rows
    if entry.optional and all(_look_up(row, key) is None for row in rows for key in entry.keys):
        return None
    printed = [values for log in logs for values in _list_printed(entry, log)]
    if not printed:
        who = "the session did not show" if logs and all(log.rank is None for log in logs) else "no rank printed"
        return f"{who} {_describe(entry)}"
    if len(rows) * len(printed) > MOST_COMPARED:
        return f"{_name_row(entry, 0, 1)} has {len(rows):,} rows, and the logs {len(printed):,}: too many to compare"
    spoken: set[int | None] = set()
    for number, row in enumerate(rows):
        if entry.over_ranks:
            if (sentence := _find_other_sum(entry, row, printed, logs)) is not None:
                return f"{_name_row(entry, number, len(rows))} is not what the ranks printed: {sentence}"
            continue
        ranks = {values.rank for values in printed if _agrees(values, row)}
        if not ranks:
            return f"{_name_row(entry, number, len(rows))} is not what was printed: {_compare(printed, row)}"
        spoken |= ranks
    if entry.every_rank and (silent := sorted(log.rank for log in logs if log.rank is not None and log.rank not in spoken)):
        return f"rank {silent[0]} did not print {_describe(entry)}"
    return None


def _read_rows(entry: LogEvidence, metrics: Mapping[str, object]) -> Sequence[Mapping[str, object]] | str:
    """Return the rows that should have been printed, or why there are none. Without `rows` the metrics are the one row."""
    if entry.rows is None:
        return [metrics]
    try:
        rows = read(entry.rows, {"metrics": metrics})
    except Unreadable as error:
        return str(error)
    if isinstance(rows, Mapping):
        rows = [rows]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        return f"{entry.rows} holds no rows"
    return rows


def _is_empty_table(entry: LogEvidence, metrics: Mapping[str, object], logs: Sequence[RankLog]) -> bool:
    """Return whether there are no rows, and a table without rows was printed."""
    if entry.rows is None or entry.table is None:
        return False
    try:
        rows = read(entry.rows, {"metrics": metrics})
    except Unreadable:
        return False
    tables = [table for log in logs for table in _read_tables(log.lines, entry.table)] if rows == [] else []
    return any(not table for table in tables)


def _list_printed(entry: LogEvidence, log: RankLog) -> Iterator[_Values]:
    """Yield what a log contains in the form of this entry."""
    if entry.table is not None:
        yield from (_Values(log.rank, texts) for table in _read_tables(log.lines, entry.table) for texts in table)
        return
    pieces = _PLACE.split(" ".join((entry.line or "").split()))
    literals, keys = pieces[0::2], pieces[1::2]
    for line in log.lines:
        texts = _split_line(" ".join(line.split()), literals, keys)
        if texts is not None and texts.get(OWN_RANK, str(log.rank)) == str(log.rank):
            yield _Values(log.rank, texts)


def _split_line(line: str, literals: Sequence[str], keys: Sequence[str]) -> dict[str, str] | None:
    """Return the texts between the literal pieces, each up to the first occurrence of the next piece; None if the line does not
    match."""
    if not line.startswith(literals[0]):
        return None
    texts: dict[str, str] = {}
    at = len(literals[0])
    for key, literal in zip(keys, literals[1:], strict=True):
        last = literal is literals[-1] and key is keys[-1]
        end = len(line) - len(literal) if last else line.find(literal, at)
        if end < at or not line.startswith(literal, end):
            return None
        if key:
            texts[key] = line[at:end].strip()
        at = end + len(literal)
    return texts if at == len(line) else None


def _read_tables(lines: Sequence[str], columns: Mapping[str, str]) -> Iterator[list[dict[str, str]]]:
    """Yield every table that has these columns, as its rows by their keys. A table is a line of titles over a line of dashes,
    which says where the columns are; it ends with an empty line, one that is longer, or another rule. If several ranks share a
    log, each line begins with the rank."""
    lines = [_PREFIX.sub("", line, count=1) for line in lines]
    for number, line in enumerate(lines):
        if number == 0 or not _RULE.fullmatch(line):
            continue
        spans = [match.span() for match in re.finditer("-+", line)]
        titles = {lines[number - 1][start:end].strip(): (start, end) for start, end in spans}
        if not set(columns.values()) <= titles.keys():
            continue
        below = _take_rows(lines, number + 1, len(line))
        yield [{key: " ".join(row[slice(*titles[title])].split()) for key, title in columns.items()} for row in below]


def _take_rows(lines: Sequence[str], begin: int, width: int) -> Iterator[str]:
    """Yield the rows of one table. They end before another rule of that width, so that no line is read for very many tables."""
    for place in range(begin, len(lines)):
        line = lines[place]
        if not 0 < len(line) <= width or (len(line) == width and _RULE.fullmatch(line)):
            return
        yield line


def _agrees(values: _Values, row: Mapping[str, object]) -> bool:
    return all(says(text, _look_up(row, key)) for key, text in values.texts.items() if key != OWN_RANK or OWN_RANK in row)


def _find_other_sum(
    entry: LogEvidence, row: Mapping[str, object], printed: Sequence[_Values], logs: Sequence[RankLog]
) -> str | None:
    """Return why a row differs from the combined output of its ranks; None if it does not. The last output of each rank
    counts."""
    common = {key for key in entry.keys if key not in entry.over_ranks and key != OWN_RANK}
    last = {values.rank: values for values in printed if all(says(values.texts[key], _look_up(row, key)) for key in common)}
    if silent := [log.rank for log in logs if log.rank is not None and log.rank not in last]:
        return f"rank {silent[0]} did not print it"
    for key, way in entry.over_ranks.items():
        numbers = [read_number(values.texts[key]) for values in last.values()]
        value = _look_up(row, key)
        if not numbers or not is_number(value) or any(number is None for number in numbers):
            return f"{key} is no number"
        put_together = _WAYS[way]([number.value for number in numbers if number is not None])
        digit = max(number.digit for number in numbers if number is not None) * (len(numbers) if way == "sum" else 1)
        if not abs(put_together - value) <= _SLACK * digit + _GRAIN * abs(value):
            return f"{key} is {value:g}, and the {way} over the ranks is {put_together:g}"
    return None


def _look_up(row: Mapping[str, object], key: str) -> object:
    here: object = row
    for name in key.split("."):
        here = here.get(name) if isinstance(here, Mapping) else None
    return here


def says(text: str, value: object) -> bool:
    """Return whether a printed text is this value: a number to the printed digits, a dash for a value that was not measured."""
    if value is None:
        return text in {"-", "None"}
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if not is_number(value):
        words = " ".join(str(value).split())
        number = NOT_FINITE.get(words.lower())
        return text == words or (number is not None and str(NOT_FINITE.get(text.lower())) == str(number))
    printed = read_number(text)
    if printed is None or not math.isfinite(value):
        return False
    return abs(printed.value - value) <= _SLACK * printed.digit * isinstance(value, float) + _GRAIN * abs(value)


@dataclass(frozen=True)
class PrintedNumber:
    """A printed number, and the value of one unit of its last digit."""

    value: float
    digit: float


def read_number(text: str) -> PrintedNumber | None:
    """Parse a text as a number, with commas between thousands or without; None if it is none."""
    plain = text.replace(",", "")
    match = _PRINTED_NUMBER.fullmatch(plain)
    if match is None:
        return None
    exponent = max(-300, min(300, int((match["exponent"] or "0")[:5])))
    digit = 10.0 ** max(-300, exponent - len(match["decimals"] or ""))
    return PrintedNumber(float(plain), digit)


def _describe(entry: LogEvidence) -> str:
    return f"a table with {', '.join(entry.table.values())}" if entry.table else f'"{entry.line}"'


def _name_row(entry: LogEvidence, number: int, count: int) -> str:
    if entry.rows is None:
        return "metrics.json"
    return entry.rows if count == 1 else f"{entry.rows}, row {number + 1},"


def _compare(printed: Sequence[_Values], row: Mapping[str, object]) -> str:
    """Return the first key of the nearest printed line whose value differs."""
    nearest = max(printed, key=lambda values: sum(says(text, _look_up(row, key)) for key, text in values.texts.items()))
    for key, text in nearest.texts.items():
        value = _look_up(row, key)
        if (key != OWN_RANK or OWN_RANK in row) and not says(text, value):
            return f"{key} is {str(value)[:60]}, and the log says {text[:60]}"
    return "another rank printed it"
