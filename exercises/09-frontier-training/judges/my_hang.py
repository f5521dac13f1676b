"""Judge my_hang.py of 9.8 with 60 small jobs that hang: a rank stops, skips a sum, or swaps two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from gpucourse.judge import Part, Verdict, Way

JOBS = 60
WAYS = {
    "first-to-time-out": Way(
        "in {case_name} you blame rank {blamed}, which waited first by the clock of its node. Such clocks differ by up to 50 "
        "ms, so the earliest time says nothing",
        (
            "    places: dict[tuple",
            "    return min(waiting, key=lambda rank: waiting[rank][\"time_ms\"]), \"stopped\"\n    places: dict[tuple",
        ),
    ),
    "fewest-done": Way(
        "in {case_name} you blame rank {blamed}, which has called the fewest operations. Stages have different numbers of "
        "them: compare numbers within a group only",
        (
            "    places: dict[tuple",
            "    return min(range(len(records)), key=lambda rank: sum(entry[\"number\"] for entry in records[rank])), "
            "\"stopped\"\n    places: dict[tuple",
        ),
    ),
    "waits-too": Way(
        "in {case_name} you blame rank {blamed}. It is missing in one group, but it waits in {group}: go on to the rank "
        "that it waits for",
        (" and rank not in waiting", ""),
    ),
    "finished-counts": Way(
        "in {case_name} you blame rank {blamed}, which has finished its step: it waits for no rank, and no rank waits for it",
        (
            "    places: dict[tuple",
            "    return next((rank for rank in range(len(records)) if rank not in waiting), 0), \"stopped\"\n  "
            "  places: dict[tuple",
        ),
    ),
    "odd-one-missed": Way(
        "jobs in which a rank stops are right. In {case_name} all members of a group wait at the same number: one of them "
        "called a different operation from the others",
        ("if len(counts) > 1:", "if len(counts) > len(records):"),
    ),
    "majority-blamed": Way(
        "in {case_name} rank {blamed} called what most members called: another rank is the odd one out",
        ("counts.most_common(1)[0][0]", "counts.most_common()[-1][0]"),
    ),
    "any-missing": Way(
        "in {case_name} you blame rank {blamed}. It waits in {group}, and no group waits for it: it has called everything "
        "that others wait for. Blame a rank that has not",
        (
            "if numbers[rank].get(group, -1) < number and rank not in waiting:",
            "if True:",
        ),
    ),
    "other-word": Way(
        "in {case_name} rank {blamed} is right, but not \"{word}\": a rank that stops calls nothing, and one that differs "
        "calls something else",
        ("return next(rank for rank in ranks if waiting[rank][\"operation\"] != usual), \"differs\"",
         "return next(rank for rank in ranks if waiting[rank][\"operation\"] != usual), \"stopped\""),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge 60 jobs of 64 ranks, some of which hang when most ranks have finished."""
    from jobs import FAULTS, Layout, hang

    find_culprit = part.function("find_culprit")
    layout = Layout(4, 4, 4, 6)
    answers = []
    for seed in range(JOBS):
        fault = FAULTS[seed % 3]
        job = hang(layout, fault, seed, late=seed % 6 == 0)
        case = f"job {seed} of 64 ranks"
        answer = part.call(find_culprit, [[dict(entry) for entry in record] for record in job.records],
                           {name: list(ranks) for name, ranks in job.members.items()}, case=case)  # fmt: skip
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise Verdict("failed", "no-pair", f"it returned {answer!r:.80} instead of (rank, word)", case)
        answers.append((job, (answer[0], answer[1]), case))
    wrong = [(job, answer, case) for job, answer, case in answers if answer != (job.culprit, job.kind)]
    if wrong:
        _explain(part, answers, wrong)
    part.note(f"{JOBS} of {JOBS} hangs")


def _waiting(job: Any) -> dict[int, dict[str, Any]]:
    return {rank: record[-1] for rank, record in enumerate(job.records) if record[-1]["state"] == "waiting"}


def _explain(part: Part, answers: list[Any], wrong: list[Any]) -> None:
    """Raise the verdict on wrong answers: the mistake that explains them, or how many are wrong."""
    _, (rank, word), case = wrong[0]
    values = {"case_name": case, "blamed": rank, "word": word}
    if all(answer[0] == its.culprit for its, answer, _ in wrong):
        raise part.wrong("other-word", case, **values)
    if not any(rank == number for number in range(64)):
        values["blamed"] = repr(rank)[:20]
    rules: dict[str, Callable[[Any], Any]] = {
        "first-to-time-out": lambda job: min(_waiting(job), key=lambda rank: _waiting(job)[rank]["time_ms"]),
        "fewest-done": lambda job: min(range(64), key=lambda rank: sum(entry["number"] for entry in job.records[rank])),
        "finished-counts": lambda job: next((rank for rank in range(64) if rank not in _waiting(job)), 0),
    }
    for way, rule in rules.items():
        if all(answer[0] == rule(its) for its, answer, _ in answers):
            raise part.wrong(way, case, **values)
    stopped_right = all(answer == (its.culprit, its.kind) for its, answer, _ in answers if its.kind == "stopped")
    if stopped_right and all(its.kind == "differs" for its, _, _ in wrong):
        if all(_is_in_majority(its, answer[0]) for its, answer, _ in wrong):
            raise part.wrong("majority-blamed", case, **values)
        raise part.wrong("odd-one-missed", case, **values)
    stopped = [(its, answer, name) for its, answer, name in wrong if its.kind == "stopped"]
    for its, answer, name in stopped:
        group = _waiting(its).get(answer[0], {}).get("group")
        values = {"case_name": name, "blamed": answer[0], "group": group}
        if group is None:
            continue
        if _is_missing_somewhere(its, answer[0]):
            raise part.wrong("waits-too", name, **values)
        raise part.wrong("any-missing", name, **values)
    counts = Counter(its.kind for its, _, _ in wrong)
    text = (
        f"{len(wrong)} of {JOBS} jobs are wrong ({counts['stopped']} in which a rank stopped, {counts['differs']} in which one"
    )
    text += f" differs). In the first, you blame {rank!r:.20}"
    raise Verdict("failed", "other", text, case)


def _is_in_majority(job: Any, rank: Any) -> bool:
    """Return whether this rank waits in the same operation as most ranks of its group."""
    waiting = _waiting(job)
    if rank not in waiting:
        return False
    entry = waiting[rank]
    texts = [its["operation"] for its in waiting.values() if (its["group"], its["number"]) == (entry["group"], entry["number"])]
    return len(set(texts)) > 1 and texts.count(entry["operation"]) > len(texts) / 2


def _is_missing_somewhere(job: Any, rank: int) -> bool:
    """Return whether other ranks wait in a group for this rank."""
    numbers = {entry["group"]: entry["number"] for entry in job.records[rank]}
    return any(
        rank in job.members[entry["group"]] and numbers.get(entry["group"], -1) < entry["number"]
        for entry in _waiting(job).values()
    )
