"""Use the learner's parts of 9.8 in a run: two simulated hangs, the real one, three slow jobs, and the accounts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from jobs import Layout, hang, slow_down

SLOW_JOBS = 3


def read_accounts() -> dict[str, Any]:
    """Return the published figures, with the tokens a second of one GPU for each job."""
    accounts: dict[str, Any] = json.loads(Path(__file__).with_name("accounts.json").read_text(encoding="utf-8"))
    for job in accounts["jobs"]:
        job |= {key: value for key, value in accounts["gpu"].items() if key != "name"}
        job["tokens_per_s"] = job["sequences"] * job["sequence"] / job["step_s"] / job["gpus"]
    return accounts


def choose_kinds(puzzle: int) -> list[str]:
    """Return the kind of the sick part of each slow job of a puzzle: three of the four kinds."""
    kinds = ["gpu", "data", "nobody", "link"]
    return [kinds[(puzzle + 3 * number) % 4] for number in range(SLOW_JOBS)]


def take_answer(answer: object, kinds: tuple[str, ...], *, number_first: bool) -> list[Any]:
    """Return the learner's pair as a list. Raises TypeError if it is not a pair of a number (or None) and one of `kinds`."""
    pair = list(answer) if isinstance(answer, (tuple, list)) else []
    if len(pair) == 2:
        number, kind = pair if number_first else reversed(pair)
        if kind in kinds and (number is None or (isinstance(number, int) and not isinstance(number, bool))):
            return pair
    shape = "(number, word)" if number_first else "(word, number)"
    raise TypeError(f"it returned {answer!r:.80} instead of {shape}, with a word of {', '.join(kinds)}")


def search_hangs(
    _world: Any, layout: list[int], puzzle: int, skew_ms: float, real: list[Any], members: dict[str, list[int]]
) -> dict[str, Any]:
    """Return `answers`: the learner's pairs (rank, kind) for two simulated hangs and then for the real one."""
    import my_hang

    jobs = [hang(Layout(*layout), fault, puzzle, skew_ms=skew_ms) for fault in ("stops", "swaps")]
    answers = [my_hang.find_culprit(job.records, job.members) for job in jobs]
    answers.append(my_hang.find_culprit(real, members))
    return {"answers": [take_answer(answer, ("stopped", "differs"), number_first=True) for answer in answers]}


def search_slow(_world: Any, layout: list[int], puzzle: int, steps: int, pauses: float) -> dict[str, Any]:
    """Return `answers`: the learner's pair (kind, number) for each slow job of a puzzle."""
    import my_slow

    torch.set_num_threads(1)
    jobs = [
        slow_down(Layout(*layout), kind, puzzle + number, steps=steps, pauses=pauses)
        for number, kind in enumerate(choose_kinds(puzzle))
    ]
    kinds = ("gpu", "link", "data", "nobody")
    return {"answers": [take_answer(my_slow.find_slow(job.seconds), kinds, number_first=False) for job in jobs]}


def count_up(_world: Any) -> dict[str, Any]:
    """Return the learner's `mfu` and `hfu` of each published job and `goodput_percent` of the log of a day, in percent."""
    import my_accounts

    accounts = read_accounts()
    mfu = [float(my_accounts.mfu(_without_published(job))) for job in accounts["jobs"]]
    return {
        "mfu": mfu, "hfu": [float(my_accounts.hfu(percent, 1.0)) for percent in mfu],
        "goodput_percent": float(my_accounts.goodput_percent(accounts["log"])),
    }  # fmt: skip


def _without_published(job: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in job.items() if not key.startswith("published")}
