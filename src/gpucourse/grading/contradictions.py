"""Why the metrics of a run cannot be true, given what this program knows of the run: how many ranks there were, when it ran,
how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpucourse.grading.printed import RankLog, find_differences
from gpucourse.model.fields import is_number
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import CheckResult
from gpucourse.units import parse_moment

AGREEMENT = "logs-agree"
"""The check that is added to those of a run if its metrics and its logs do not agree."""
CLOCK_SLACK_S = 300.0
"""How far a node's clock may be off beyond its measured skew; without a measurement, in all."""
MOST_ROWS = 20_000
"""How many mappings of the metrics are examined."""


def find_contradictions(
    exercise: Exercise, record: RunRecord, metrics: Mapping[str, object], logs: Sequence[RankLog]
) -> tuple[str, ...]:
    """Return why the metrics of a run cannot be what it measured, a sentence each; empty if nothing contradicts them."""
    if not exercise.logs:
        return ()
    reasons = tuple(
        sentence
        for sentences in (
            _compare_world(record, metrics),
            _find_missing_logs(record, logs),
            _compare_times(record, metrics),
            _find_too_long(record, metrics),
            find_differences(exercise.logs, metrics, logs),
        )
        for sentence in sentences
    )
    if reasons and record.full_logs:
        cut = f"only the beginning of {record.full_logs[0]} was kept (log_limit in gpucourse.yaml)"
        return (f"{cut}: {reasons[0]}", *reasons[1:])
    return reasons


def make_check(sentences: Sequence[str]) -> CheckResult:
    """Return the check that did not pass."""
    more = f"; and {len(sentences) - 1} more" if len(sentences) > 1 else ""
    return CheckResult(
        id=AGREEMENT,
        title="The metrics are what the ranks printed",
        verdict="failed",
        evidence="logic",
        observed=f"{sentences[0][:300]}{more}",
        expected="what the logs say",
        hint="points come from what a run measured and printed: gpucourse reset brings the course's script back",
    )


def list_contradictions(checks: Sequence[CheckResult]) -> str:
    """Return what a verdict says of metrics and logs that do not agree; empty if they agree."""
    return next((check.observed for check in checks if check.id == AGREEMENT), "")


def _compare_world(record: RunRecord, metrics: Mapping[str, object]) -> Iterator[str]:
    """Check that the world size is that of the plan; every rank may have started the same number of processes."""
    size = metrics.get("world_size")
    if record.starts_ranks and is_number(size) and (size < 1 or size % max(1, record.world_size)):
        yield f"world_size is {size}, and {record.world_size} ranks were started"


def _find_missing_logs(record: RunRecord, logs: Sequence[RankLog]) -> Iterator[str]:
    """Yield ranks whose log is missing or empty; under Slurm the jobs' rows count, not a plan's ranks."""
    if record.slurm is not None:
        return
    if not logs:
        yield "it has no logs here"
        return
    printed = {log.rank for log in logs if any(log.lines)}
    silent = next((rank for rank in range(record.world_size) if rank not in printed), None)
    if silent is not None:
        yield f"rank {silent} of {record.world_size} printed nothing"


def _compare_times(record: RunRecord, metrics: Mapping[str, object]) -> Iterator[str]:
    """Check that metrics.json was written during the run, by the node's clock."""
    written, (begin, end) = metrics.get("written"), (record.created, record.ended)
    if not isinstance(written, str) or end is None:
        return
    try:
        at, first, last = (parse_moment(moment).timestamp() for moment in (written, begin, end))
    except (ValueError, TypeError, OverflowError):
        yield f"it was written at {written[:60]!r}, which is not a time"
        return
    slack = CLOCK_SLACK_S + max((abs(skew) for skew in record.clock_skew_s.values()), default=0.0)
    if not first - slack <= at <= last + slack:
        yield f"it was written at {written[:40]}, and the run took place from {begin} to {end}"


def _find_too_long(record: RunRecord, metrics: Mapping[str, object]) -> Iterator[str]:
    """Yield a row whose timed calls took longer than the run: half of the samples take the median or more."""
    seconds = max((end.seconds or 0.0 for end in record.node_exits), default=0.0)
    if record.slurm is not None or not seconds:
        return
    for row in _list_rows(metrics):
        median, samples = row.get("median_ms"), row.get("samples")
        if not (is_number(median) and is_number(samples)):
            continue
        least = median * samples / 2e3 / max(1, record.world_size)
        if least > seconds:
            yield f"{samples} calls of {median:g} ms take {least:.0f} s or more, and the run took {seconds:.0f} s"
            return


def _list_rows(metrics: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return every mapping in the metrics, at any depth."""
    rows: list[Mapping[str, object]] = []
    waiting: list[object] = [metrics]
    while waiting and len(rows) < MOST_ROWS:
        here = waiting.pop()
        if isinstance(here, Mapping):
            rows.append(here)
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here[:MOST_ROWS]
    return rows
