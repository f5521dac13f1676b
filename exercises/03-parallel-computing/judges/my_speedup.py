"""Judge my_speedup.py of 3.4 on artificial training runs, strong and weak: each has a cold start, one delayed and one short
step, and a slow rank, which is a different one in each step.

The times of the other steps lie evenly around their median. So any figure that a single step does not move is right: the
median, or a mean without the longest and the shortest steps."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import Any

from gpucourse.judge import Case, Part, Way

WAYS = {
    "cold": Way(
        "you counted the first {warm_up} steps: they set up memory, buckets and connections once, unlike the other "
        "steps of a training run",
        ('row["step"] >= training["warm_up_steps"]', "True"),
    ),
    "mean": Way(
        "you took the mean of the steps, so one delayed step dominates it: something else used the machine. Take a figure that "
        "a single step does not move, such as the median",
        (
            "step_s = median(max(seconds) for seconds in steps.values())",
            "step_s = sum(max(seconds) for seconds in steps.values()) / len(steps)",
        ),
    ),
    "fastest-step": Way(
        "you took the fastest step: it is as rare as the slowest one. Take a figure that most steps are near",
        (
            "step_s = median(max(seconds) for seconds in steps.values())",
            "step_s = min(max(seconds) for seconds in steps.values())",
        ),
    ),
    "fastest-rank": Way(
        "you took the fastest rank of each step. No rank can begin the next step before the slowest has finished",
        ("max(seconds)", "min(seconds)"),
    ),
    "mean-of-ranks": Way(
        "you took the mean of the ranks. A step ends with its slowest rank: the others wait for it, in this step or in the "
        "next",
        ("max(seconds)", "sum(seconds) / len(seconds)"),
    ),
    "ranks-added": Way(
        "you added the times of the ranks, which run at the same time: a step takes as long as its slowest rank",
        ("max(seconds)", "sum(seconds)"),
    ),
    "rows-mixed": Way(
        "you took the median of all rows, whatever their step and rank. First find one time for each step, that of its "
        "slowest rank; then take the median of the steps",
        ('steps.setdefault(row["step"], [])', "steps.setdefault(len(steps), [])"),
    ),
    "one-slowest-rank": Way(
        "you took the median of each rank, then the slowest rank. But a different rank is the slowest in each step, and all "
        "the others wait for it: first find the slowest rank of each step, then take the median of the steps",
        (
            'steps.setdefault(row["step"], []).append(row["compute_s"] + row["communicate_s"])\n'
            "    step_s = median(max(seconds)",
            'steps.setdefault(row["rank"], []).append(row["compute_s"] + row["communicate_s"])\n'
            "    step_s = max(median(seconds)",
        ),
    ),
    "one-too-many": Way(
        "you left out one step more than the {warm_up} warm-up steps: steps are numbered from 0, so step {warm_up} counts",
        ('row["step"] >=', 'row["step"] >'),
    ),
    "compute-only": Way(
        "you left out communicate_s, which is the cost of having other ranks: a step consists of computing and of waiting for "
        "the network",
        (' + row["communicate_s"]', ""),
    ),
    "maxima-added": Way(
        "you added the longest compute time and the longest communication time, which belong to different ranks: a rank that "
        "computes longer waits less. Add the two for each rank, then take the slowest",
        (
            "    step_s = median(max(seconds) for seconds in steps.values())\n",
            '    for step in steps:\n        rows = [row for row in training["rows"] if row["step"] == step]\n'
            '        steps[step] = [sum(max(row[key] for row in rows) for key in ("compute_s", "communicate_s"))]\n'
            "    step_s = median(max(seconds) for seconds in steps.values())\n",
        ),
    ),
    "times-only": Way(
        "you divided step times, but the steps do different amounts of work: {ranks} ranks process {many} samples in one "
        "step, and one rank {one}. Compare samples per second",
        ('training["ranks"] * training["batch_per_rank"] / step_s', "1 / step_s"),
    ),
    "one-ranks-samples": Way(
        "you counted the samples of one rank: in a step all {ranks} ranks process {batch} each",
        ('training["ranks"] * training["batch_per_rank"] / step_s', 'training["batch_per_rank"] / step_s'),
    ),
    "upside-down": Way(
        "you divided the wrong way round: S = samples per second of all ranks divided by those of one rank, and more is better",
        ("samples_per_s(together) / samples_per_s(alone)", "samples_per_s(alone) / samples_per_s(together)"),
    ),
    "efficiency-undivided": Way(
        "the speed-up is right. The efficiency is the speed-up divided by the number of ranks, {ranks}: the share of a "
        "perfect speed-up",
        ('100 * speedup / together["ranks"]', "100 * speedup"),
    ),
    "efficiency-share": Way(
        "the speed-up is right; the efficiency has to be in percent, but yours is a fraction of 1",
        ('100 * speedup / together["ranks"]', 'speedup / together["ranks"]'),
    ),
    "all-communication": Way(
        "you counted all of communicate_s as waiting: {given} %, but {right} % is right. The rank that arrives last waits for "
        "nobody, and still has to send",
        ('send_s = min(row["communicate_s"] for row in rows)', "send_s = 0.0"),
    ),
    "longest-wait": Way(
        "{given} % is how long the fastest rank waits, but {right} % is the mean of all {ranks} ranks. The slowest one counts, "
        "too: it waits for 0 s",
        (
            'sum(row["communicate_s"] - send_s for row in rows) / len(rows)',
            'max(row["communicate_s"] - send_s for row in rows)',
        ),
    ),
    "others-alone": Way(
        "{given} % is the mean of the ranks that wait, but {right} % is the mean of all {ranks} ranks, with the slowest one",
        ("for row in rows) / len(rows)", "for row in rows) / max(1, len(rows) - 1)"),
    ),
    "waits-added": Way(
        "you added the waiting of {ranks} ranks, which wait at the same time, and divided it by one step: {given} %, but the "
        "mean of the ranks is {right} %",
        ("for row in rows) / len(rows)", "for row in rows)"),
    ),
    "waits-cold": Way(
        "you counted the {warm_up} warm-up steps in `waiting`: {given} %, but without them {right} % is right",
        (' - set(range(training["warm_up_steps"]))', ""),
    ),
    "share-of-one": Way(
        "`waiting` has to be in percent: {right}, but yours is {given}, a fraction of 1",
        ("100 * median(shares)", "median(shares)"),
    ),
}

Training = dict[str, Any]
CASES = {  # ranks, samples per rank, samples of one rank alone, steps after the warm-up steps, warm-up steps
    "strong scaling, 2 ranks": (2, 64, 128, 11, 2),
    "weak scaling, 2 ranks": (2, 128, 128, 13, 3),
    "strong scaling, 4 ranks": (4, 32, 128, 11, 1),
    "weak scaling, 3 ranks": (3, 50, 50, 13, 2),
    "neither, 5 ranks": (5, 48, 64, 11, 0),
    "1 rank compared with itself": (1, 128, 128, 11, 2),
}
WAITING_CASES = {  # ranks, share of a step in which data is sent, share in which a rank waits, warm-up steps
    "slow network, 2 equal ranks": (2, 0.4, 0.0, 2),
    "slow rank, 2 ranks": (2, 0.05, 0.2, 2),
    "slow rank, 4 ranks": (4, 0.1, 0.2, 4),
    "slow rank and network, 3 ranks": (3, 0.25, 0.15, 0),
    "1 rank": (1, 0.1, 0.0, 1),
}
WAITING_WAYS = ("all-communication", "longest-wait", "others-alone", "waits-added", "waits-cold", "share-of-one")


def judge(part: Part) -> None:
    """Judge six comparisons, each with the result of every mistake."""
    compare, waiting = part.function("compare"), part.function("waiting")
    cases = []
    for name, (ranks, batch, batch_alone, steps, warm_up) in CASES.items():
        alone, together = make_training(1, batch_alone, steps, warm_up + 1), make_training(ranks, batch, steps, warm_up)
        right = compare_as(alone, together)
        values = {"ranks": ranks, "batch": batch, "one": batch_alone, "many": ranks * batch, "warm_up": warm_up}
        answer = part.call(compare, alone, together, case=name)
        answer = list(answer) if isinstance(answer, tuple) else answer
        knobs = {"ranks": ranks, "scaling": name.partition(" ")[0]}
        cases.append(Case(name, answer, list(right), _ways(alone, together, right), values, knobs))
    part.compare(cases)
    _judge_waiting(part, waiting)
    part.note(f"right for {len(CASES)} comparisons, each with a cold start, a delayed step, a short step and a slow rank")


def _judge_waiting(part: Part, waiting: Callable[[Training], Any]) -> None:
    """Judge the share of waiting in five trainings, in which each all-reduce ends on all ranks at the same time."""
    cases = []
    for name, (ranks, sent_share, waiting_share, warm_up) in WAITING_CASES.items():
        training = make_waiting_training(ranks, sent_share, waiting_share, warm_up)
        shares = {way: waiting_as(training, way) for way in ("", *WAITING_WAYS)}
        right = shares.pop("")
        values = {"ranks": ranks, "warm_up": warm_up, "right": f"{right:.1f}"}
        answer = part.call(waiting, training, case=name)
        if isinstance(answer, float):
            values["given"] = f"{answer:.3g}"
        cases.append(Case(name, answer, right, shares, values, {"ranks": ranks}))
    part.compare(cases)


def make_factors(steps: int, warm_up: int) -> list[float]:
    """Return the length of each step as a multiple of a usual one: `warm_up` cold steps, then an odd number of `steps`.

    After the cold steps, the second step is delayed, and the third is short. The other steps lie evenly around 1.
    """
    factors = [1.0 + 0.03 * (place * 5 % (steps - 2) - (steps - 3) / 2) for place in range(steps - 2)]
    return [10.0] * warm_up + [factors[0], 6.0, 0.7, *factors[1:]]


def make_waiting_training(ranks: int, sent_share: float, waiting_share: float, warm_up: int) -> Training:
    """Return raw times in which one rank is late in each step, a different one each time; the others are late by a third of
    that time or not at all.

    `sent_share` and `waiting_share` are shares of a usual step. Steps have different lengths.
    """
    early = [1.0 if place and place % 2 == 0 else 2 / 3 if place else 0.0 for place in range(ranks)]
    mean_early = sum(early) / ranks
    rows = []
    for step, factor in enumerate(make_factors(9, warm_up)):
        step_s = 0.1 * (1 + 0.2 * (step * 5 % 7))
        late_s = step_s * waiting_share * min(factor, 2.0) / mean_early if mean_early else 0.0
        sent_s = step_s * sent_share
        for rank in range(ranks):
            wait_s = late_s * early[(rank + step) % ranks]
            rows.append({"step": step, "rank": rank, "compute_s": step_s - sent_s - wait_s, "communicate_s": sent_s + wait_s})
    mixed = sorted(rows, key=lambda row: (row["step"] * 5 + row["rank"] * 3) % 11)
    return {"ranks": ranks, "batch_per_rank": 32, "warm_up_steps": warm_up, "rows": mixed}


def waiting_as(training: Training, way: str) -> float:
    """Return the share of waiting in percent, computed with the mistake `way`, or correctly if `way` is ""."""
    shares, ranks = [], training["ranks"]
    for step in sorted({row["step"] for row in training["rows"]}):
        if step < training["warm_up_steps"] and way != "waits-cold":
            continue
        rows = [row for row in training["rows"] if row["step"] == step]
        send_s = min(row["communicate_s"] for row in rows)
        step_s = max(row["compute_s"] + row["communicate_s"] for row in rows)
        waits = [row["communicate_s"] - (0.0 if way == "all-communication" else send_s) for row in rows]
        divisor = {"longest-wait": 1, "others-alone": max(1, ranks - 1), "waits-added": 1}.get(way, ranks)
        shares.append((max(waits) if way == "longest-wait" else sum(waits)) / divisor / step_s)
    return (1 if way == "share-of-one" else 100) * statistics.median(shares)


def make_training(ranks: int, batch: int, steps: int, warm_up: int) -> Training:
    """Return raw times: one rank computes slowest and waits least. The ranks take turns: each step has a different slowest
    rank."""
    rows = []
    for step, factor in enumerate(make_factors(steps, warm_up)):
        for rank in range(ranks):
            place = (rank + step) % ranks  # from the fastest to the slowest
            compute = factor * 1e-4 * batch * (1 + 0.1 * place**2)
            wait = 0.0 if ranks == 1 else 1e-3 + 3e-6 * batch * (ranks - 1 - place)
            rows.append({"step": step, "rank": rank, "compute_s": compute, "communicate_s": wait})
    mixed = sorted(rows, key=lambda row: (row["step"] * 7 + row["rank"] * 3) % 11)  # rows come in any order
    return {"ranks": ranks, "batch_per_rank": batch, "warm_up_steps": warm_up, "rows": mixed}


def compare_as(
    alone: Training,
    together: Training,
    *,
    of_ranks: Callable[[list[float]], float] = max,
    of_steps: Callable[[Iterable[float]], float] = statistics.median,
    keys: tuple[str, ...] = ("compute_s", "communicate_s"),
    warm: Callable[[Training], int] = lambda training: training["warm_up_steps"],
    group: str = "step",
    samples: Callable[[Training], float] = lambda training: training["ranks"] * training["batch_per_rank"],
) -> tuple[float, float]:
    """Return the speed-up, and the efficiency in percent. Each mistake is a set of keyword arguments."""

    def rate(training: Training) -> float:
        steps: dict[int, list[float]] = {}
        for row in training["rows"]:
            if row["step"] >= warm(training):
                steps.setdefault(row[group] if group in row else len(steps), []).append(sum(row[key] for key in keys))
        return samples(training) / of_steps([of_ranks(seconds) for seconds in steps.values()])

    speedup = rate(together) / rate(alone)
    return speedup, 100 * speedup / together["ranks"]


def _ways(alone: Training, together: Training, right: tuple[float, float]) -> dict[str, list[float]]:
    speedup, efficiency = right
    ways = {
        "cold": compare_as(alone, together, warm=lambda _: 0),
        "mean": compare_as(alone, together, of_steps=statistics.fmean),
        "fastest-step": compare_as(alone, together, of_steps=min),
        "fastest-rank": compare_as(alone, together, of_ranks=min),
        "mean-of-ranks": compare_as(alone, together, of_ranks=statistics.fmean),
        "ranks-added": compare_as(alone, together, of_ranks=sum),
        "rows-mixed": compare_as(alone, together, group="row"),
        "one-slowest-rank": compare_as(alone, together, group="rank", of_ranks=statistics.median, of_steps=max),
        "one-too-many": compare_as(alone, together, warm=lambda training: training["warm_up_steps"] + 1),
        "compute-only": compare_as(alone, together, keys=("compute_s",)),
        "maxima-added": compare_as(_add_maxima(alone), _add_maxima(together)),
        "times-only": compare_as(alone, together, samples=lambda _: 1),
        "one-ranks-samples": compare_as(alone, together, samples=lambda training: training["batch_per_rank"]),
        "upside-down": (1 / speedup, 100 / speedup / together["ranks"]),
        "efficiency-undivided": (speedup, 100 * speedup),
        "efficiency-share": (speedup, efficiency / 100),
    }
    return {name: list(way) for name, way in ways.items()}


def _add_maxima(training: Training) -> Training:
    """Return every row with the longest compute time and the longest communication time of its step."""
    rows = [
        row
        | {
            key: max(candidate[key] for candidate in training["rows"] if candidate["step"] == row["step"])
            for key in row
            if key[-2:] == "_s"
        }
        for row in training["rows"]
    ]
    return training | {"rows": rows}
