"""Judge my_shares.py of 0.2 by the samples of every rank. Any complete and even split is right if it is shuffled again each
epoch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "no-epoch": Way(
        "every epoch has the same order as the first: the shuffle does not depend on the epoch. Training continues without "
        "an error, but each rank sees the same samples in every epoch. set_epoch prevents that",
        ("manual_seed(seed + epoch)", "manual_seed(seed)"),
    ),
    "epoch-repeats": Way(
        "epoch {epoch} has the same order as epoch 0, but other epochs do not: the shuffle uses only a part of the epoch's "
        "number, so orders repeat",
        ("manual_seed(seed + epoch)", "manual_seed(seed + epoch // 2)"),
    ),
    "no-seed": Way(
        "another seed gives the same order: the shuffle must depend on the seed, so that a second training run can differ from "
        "the first",
        ("manual_seed(seed + epoch)", "manual_seed(epoch)"),
    ),
    "rank-in-the-shuffle": Way(
        "sample {sample} is used {times} times, and {missing} of the {samples} samples are not used at all. Did the ranks "
        "shuffle differently? All ranks must shuffle with the same seed; only the share that a rank takes may depend on its "
        "number",
        ("manual_seed(seed + epoch)", "manual_seed(seed + epoch + 1000 * rank)"),
    ),
    "same-for-all": Way(
        "every rank got the same {shortest} samples, and {missing} of the {samples} went to no rank: the share that a rank "
        "takes must depend on its number",
        ("return padded[rank::ranks]", "return padded[::ranks]"),
    ),
    "not-repeatable": Way(
        "two calls for the same rank returned different shares, so the shuffle depends on more than seed and epoch. The "
        "ranks would not agree, because each is a process with its own random generator",
        ("torch.randperm(samples, generator=generator)", "torch.randperm(samples)"),
    ),
    "uneven": Way(
        "rank {most} got {longest} samples and rank {least} got {shortest}, of {samples} for {ranks} ranks. The rank with more "
        "makes one more step, and then waits for the others for ever: repeat some samples, so that all have the same number",
        ("padded = (order * ranks)[: count * ranks]", "padded = order"),
    ),
    "padded-once": Way(
        "with {samples} samples for {ranks} ranks, rank {least} got {shortest}: is the order repeated often enough? With so "
        "few samples, one repetition is not enough padding",
        ("(order * ranks)[: count * ranks]", "(order * 2)[: count * ranks]"),
    ),
    "dropped": Way(
        "{missing} of the {samples} samples went to no rank in this epoch (the first: {sample}). If the samples do not "
        "divide evenly, repeat some instead of leaving any out: round the share up, not down",
        ("math.ceil(samples / ranks)", "max(1, samples // ranks)"),
    ),
    "too-many": Way(
        "every rank got {shortest} samples, but {needed} are enough for {samples} on {ranks} ranks: the ranks have to "
        "share the samples, so that an epoch takes fewer steps",
        ("math.ceil(samples / ranks)", "samples"),
    ),
    "not-shuffled": Way(
        "the samples come in the order of their numbers, in every epoch: if a data set is sorted by class or by length, "
        "each step would see only one kind",
        ("torch.randperm(samples, generator=generator)", "torch.arange(samples)"),
    ),
    "same-share": Way(
        "the order changes with the epoch, but the same {shortest} samples stay together in one share in several epochs: "
        "shuffle all samples first, and split them afterwards",
        (
            "torch.randperm(samples, generator=generator).tolist()",
            "[ranks * place + own for place in torch.randperm(samples // ranks, generator=generator).tolist() "
            "for own in range(ranks)] + list(range(samples // ranks * ranks, samples))",
        ),
    ),
    "no-such-sample": Way(
        "it returned the number {sample}, but the samples are numbered 0 to {last}",
        (
            "torch.randperm(samples, generator=generator).tolist()",
            "(torch.randperm(samples, generator=generator) + 1).tolist()",
        ),
    ),
    "no-numbers": Way(
        "it returned {given}: return the numbers of the samples, as a list of whole numbers",
        ("return padded[rank::ranks]", "return rank"),
    ),
}

SPLITS = ((12, 3), (13, 2), (40, 4), (41, 5), (7, 1), (3, 8), (1, 2))  # samples, ranks
SHUFFLED = (60, 3)  # enough samples that no order repeats by chance
EPOCHS = (0, 1, 2, 7)


def judge(part: Part) -> None:
    """Judge the shares of all ranks for several numbers of samples and ranks, then the effects of epoch and seed."""
    choose = part.function("choose_samples")
    for samples, ranks in SPLITS:
        for epoch in (0, 3):
            case = f"{samples} samples, {ranks} rank{'s' * (ranks > 1)}, epoch {epoch}"
            with part.trying({"samples": samples, "ranks": ranks, "epoch": epoch}):
                shares = [_ask(part, choose, case, samples, ranks, rank, epoch) for rank in range(ranks)]
                _judge_split(part, samples, ranks, shares, case)
    _judge_shuffle(part, choose)
    part.note(f"complete, even and the same for all ranks in {len(SPLITS)} splits, and shuffled again for each epoch")


def _ask(
    part: Part, choose: Callable[..., Any], case: str, samples: int, ranks: int, rank: int, epoch: int, seed: int = 5
) -> list[int]:
    """Return the share of one rank. As on a real rank, it is computed in a process with its own random generator."""
    import torch

    shares = []
    for turn in range(2):
        random.seed(100 * turn + rank)
        torch.manual_seed(100 * turn + rank)
        answer = part.call(choose, samples, ranks, rank, epoch, seed, case=f"{case}, rank {rank}")
        answer = answer.tolist() if hasattr(answer, "tolist") else answer
        answer = part.call(list, answer, case=case) if isinstance(answer, Iterator) else answer
        if not isinstance(answer, Iterable) or isinstance(answer, (str, dict, set)) or not all(map(_is_number, answer)):
            raise part.wrong("no-numbers", f"{case}, rank {rank}", given=str(answer)[:60])
        shares.append([int(number) for number in answer])
    if shares[0] != shares[1]:
        raise part.wrong("not-repeatable", f"{case}, rank {rank}")
    return shares[0]


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and (
        isinstance(value, int) or (hasattr(value, "item") and isinstance(value.item(), int))
    )


def _judge_split(part: Part, samples: int, ranks: int, shares: list[list[int]], case: str) -> None:
    """Check that the shares are complete and even. Raises Verdict."""
    times = Counter(number for share in shares for number in share)
    for number in times:
        if not 0 <= number < samples:
            raise part.wrong("no-such-sample", case, sample=number, last=samples - 1)
    lengths = [len(share) for share in shares]
    share_length, missing = -(-samples // ranks), [number for number in range(samples) if number not in times]
    values = {
        "samples": samples, "ranks": ranks, "needed": share_length, "longest": max(lengths), "shortest": min(lengths),
        "most": lengths.index(max(lengths)), "least": lengths.index(min(lengths)), "missing": len(missing),
    }  # fmt: skip
    if len(set(lengths)) > 1:
        raise part.wrong("padded-once" if samples < ranks else "uneven", case, **values)
    if lengths[0] > share_length:
        raise part.wrong("too-many", case, **values)
    if missing and len(set(map(frozenset, shares))) == 1 < ranks:
        raise part.wrong("same-for-all", case, **values)
    if missing and lengths[0] == share_length:
        sample, count = times.most_common(1)[0]
        raise part.wrong("rank-in-the-shuffle", case, **values, sample=sample, times=count)
    if missing:
        raise part.wrong("dropped", case, **values, sample=missing[0])


def _judge_shuffle(part: Part, choose: Callable[..., Any]) -> None:
    """Check that the order and the shares depend on the epoch, and the order on the seed. Raises Verdict."""
    samples, ranks = SHUFFLED
    case = f"{samples} samples, {ranks} ranks, epochs {', '.join(map(str, EPOCHS))}"
    epochs = [[_ask(part, choose, case, samples, ranks, rank, epoch) for rank in range(ranks)] for epoch in EPOCHS]
    if all(share == sorted(share) for shares in epochs for share in shares):
        raise part.wrong("not-shuffled", case)
    repeated = [epoch for epoch, shares in zip(EPOCHS, epochs, strict=True) if shares == epochs[0]]
    if len(repeated) == len(EPOCHS):
        raise part.wrong("no-epoch", case)
    if len(repeated) > 1:
        raise part.wrong("epoch-repeats", case, epoch=repeated[1])
    groups = [{frozenset(share) for share in shares} for shares in epochs]
    if any(groups[0] & group for group in groups[1:]):
        raise part.wrong("same-share", case, shortest=len(epochs[0][0]))
    case = f"{case}, seed 6"
    reseeded = [[_ask(part, choose, case, samples, ranks, rank, epoch, seed=6) for rank in range(ranks)] for epoch in EPOCHS]
    alike = [
        epoch for epoch, shares, reseeded_shares in zip(EPOCHS, epochs, reseeded, strict=True) if shares == reseeded_shares
    ]
    if len(alike) == len(EPOCHS):
        raise part.wrong("no-seed", case)
    if alike:
        says = f"seeds 5 and 6 give the same order in epoch {alike[0]}, but different orders in other epochs"
        raise Verdict("failed", "other", says, f"{samples} samples, {ranks} ranks, epoch {alike[0]}, seeds 5 and 6")
