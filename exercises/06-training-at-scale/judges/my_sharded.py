"""Judge my_sharded.py of 6.2 with real ranks: AdamW's weights, and the numbers that a rank keeps and sends."""

from __future__ import annotations

import itertools
import math
from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way

SHAPES = ((37, 11), (11,), (3, 5), (1,))  # 434 numbers, which 3 and 4 ranks do not divide
NUMBERS, STEPS, TOLERANCE = sum(math.prod(shape) for shape in SHAPES), 4, 1e-5
VALUES: dict[str, Any] = {
    "lr": 0.05,
    "betas": (0.7, 0.9),
    "eps": 0.2,
    "weight_decay": 0.3,
}  # an eps at which a sum differs from a mean
USUAL = {"lr": 0.05, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
WAYS = {
    "sum": Way(
        "the weights follow from the sum of {ranks} ranks' gradients. A reduce-scatter adds; divide by the number of ranks",
        ("gradient /= self.ranks\n", "gradient /= 1\n"),
    ),
    "own-gradient": Way(
        "each rank updates its share only with its own gradient: the other ranks' samples do not count there. Use the "
        "mean over all ranks for each share",
        (
            "dist.reduce_scatter_tensor(gradient, self.flatten([p.grad for p in self.parameters]))\n"
            "        gradient /= self.ranks",
            "gradient = self.flatten([p.grad for p in self.parameters]).chunk(self.ranks)[self.rank].clone()",
        ),
    ),
    "not-gathered": Way(
        "after a step rank {rank} of {ranks} has different weights from rank 0: each has updated its own share, but has not "
        "sent it to the others. All ranks must continue with the same weights",
        (
            "dist.all_gather_into_tensor(whole, weights)",
            "whole.copy_(self.flatten(self.parameters))\n        whole.chunk(self.ranks)[self.rank].copy_(weights)",
        ),
        seen="after a step rank {rank} of {ranks} has different weights from rank 0: all must continue with the same weights",
    ),
    "not-written": Way(
        "a step does not change the weights: write the new numbers into the parameters that were passed, in place, because the "
        "model uses those",
        ("parameter.copy_(new.view_as(parameter))", "parameter = new.view_as(parameter)"),
    ),
    "misplaced": Way(
        "the new weights are right, but in the wrong places: the share of rank 0 comes first when all are gathered, so rank 0 "
        "must update the first share, and so on",
        (
            "dist.all_gather_into_tensor(whole, weights)",
            "dist.all_gather_into_tensor(whole, weights)\n        whole = torch.cat(whole.chunk(self.ranks)[::-1])",
        ),
    ),
    "end-forgotten": Way(
        "the last {missing} of {numbers} numbers never change on {ranks} ranks: {numbers} / {ranks} is not whole. Round the "
        "share up, and pad with zeros",
        (
            "flat = torch.cat([tensor.detach().flatten() for tensor in tensors])",
            "flat = torch.cat([tensor.detach().flatten() for tensor in tensors])\n"
            "        flat[flat.numel() // self.ranks * self.ranks :] = 0",
        ),
    ),
    "not-finite": Way(
        "after a step some weights are NaN or infinite: what is divided by 0? AdamW counts its steps from 1",
        ("self.steps += 1", "self.steps += 0"),
    ),
    "moments-lost": Way(
        "the first step is right, but each later one is a first step again: the moments (or the optimizer that has them) must "
        "remain from one step to the next",
        ("self.steps += 1", "self.steps = 1\n        self.mean.zero_()\n        self.square.zero_()"),
    ),
    "not-corrected": Way(
        "the first steps are too small: AdamW divides the moments by 1 - beta ** t, since they begin at 0",
        (
            "mean = self.mean / (1 - self.betas[0] ** self.steps)\n"
            "        square = self.square / (1 - self.betas[1] ** self.steps)",
            "mean, square = self.mean, self.square",
        ),
    ),
    "decay-in-gradient": Way(
        "that is Adam with the decay added to the gradient. AdamW subtracts lr * weight_decay * weight, separately from "
        "the moments: that is what its W means",
        (
            "weights *= 1 - self.lr * self.weight_decay",
            "gradient += self.weight_decay * weights",
        ),
    ),
    "no-decay": Way(
        "the weights do not decay: AdamW multiplies them by 1 - lr * weight_decay in each step",
        ("weights *= 1 - self.lr * self.weight_decay\n", "weights *= 1\n"),
    ),
    "decay-without-lr": Way(
        "the weights decay too fast: AdamW multiplies them by 1 - lr * weight_decay in each step, not by 1 - weight_decay",
        ("weights *= 1 - self.lr * self.weight_decay\n", "weights *= 1 - self.weight_decay\n"),
    ),
    "usual-values": Way(
        "you use torch's default betas, eps and weight_decay instead of the arguments",
        (
            "lr, betas, eps, weight_decay\n        self.rank",
            "lr, (0.9, 0.999), 1e-8, 0.01\n        self.rank",
        ),
    ),
    "keeps-everything": Way(
        "with {ranks} ranks it keeps {kept:,} numbers from one step to the next, for {numbers:,} parameters: {most:,} "
        "are allowed, four for each number of its own share. It needs nothing of the other shares",
        (
            "dist.reduce_scatter_tensor(gradient,",
            "self.everything = self.flatten(self.parameters), self.flatten(self.parameters)\n"
            "        dist.reduce_scatter_tensor(gradient,",
        ),
    ),
    "kept-elsewhere": Way(
        "with {ranks} ranks {kept:,} numbers remain from one step to the next, but {most:,} are allowed. What is in a global "
        "variable or in the class takes memory, too",
        (
            "dist.reduce_scatter_tensor(gradient,",
            "type(self).everything = self.flatten(self.parameters), self.flatten(self.parameters)\n"
            "        dist.reduce_scatter_tensor(gradient,",
        ),
    ),
    "sends-too-much": Way(
        "with {ranks} ranks each sends {sent:,.0f} numbers ({calls}); a reduce-scatter and an all-gather send {most:,.0f}. Of "
        "the summed gradients a rank needs only its own share",
        (
            "dist.reduce_scatter_tensor(gradient, self.flatten([p.grad for p in self.parameters]))",
            "summed = self.flatten([p.grad for p in self.parameters])\n        dist.all_reduce(summed)\n"
            "        gradient = summed.chunk(self.ranks)[self.rank].clone()",
        ),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge four steps on 1, 3 and 4 ranks, with different gradients on each rank and in each step."""
    import shard_bytes  # noqa: F401  # before the ranks are forked

    sharded = part.function("ShardedAdamW")
    for size in (3, 4, 1):
        answers = part.on_ranks(size, lambda rank, size: _train(part, sharded, rank, size))
        _check_weights(part, sharded, size, [answer["weights"] for answer in answers])
        memory = "in place" if all(answer["in place"] for answer in answers) else "in other memory"
        part.compare([Case(f"where the new weights are on {size} ranks", memory, "in place")])
        for answer in answers:
            _check_costs(part, size, answer)
    part.note(f"AdamW's weights after each of {STEPS} steps, on 1, 3 and 4 ranks, {NUMBERS} numbers")
    part.note("at most four numbers kept for each one of its own share; sends as much as an all-reduce of the gradients")


def _draw(shape: tuple[int, ...], *numbers: int) -> Any:
    """Return random numbers that depend only on the arguments."""
    import torch

    seed = sum(number * 1000**place for place, number in enumerate(numbers))
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _make_parameters() -> list[Any]:
    import torch

    return [torch.nn.Parameter(_draw(shape, place)) for place, shape in enumerate(SHAPES)]


def _give_gradients(parameters: list[Any], step: int, ranks: list[int], size: int) -> None:
    """Set the gradients to the sum of these ranks' gradients, divided by `size`."""
    for place, parameter in enumerate(parameters):
        parameter.grad = sum(_draw(parameter.shape, place, step + 1, rank + 1) for rank in ranks) / size


def _train(part: Part, sharded: Any, rank: int, size: int, values: dict[str, Any] = VALUES) -> dict[str, Any]:
    """Return this rank's weights after each step, how many numbers it keeps, and how many it sent in the last step."""
    import warnings

    from shard_bytes import SentBytes, count_kept_numbers

    warnings.filterwarnings("ignore", category=FutureWarning)  # newer names for the same collectives
    parameters = _make_parameters()
    views = [parameter.detach() for parameter in parameters]  # in the same memory
    optimizer = part.call(sharded, parameters, **values)
    weights = []
    for step in range(STEPS):
        _give_gradients(parameters, step, [rank], 1)
        with SentBytes(size) as sent_bytes:
            part.call(optimizer.step, case=f"step {step + 1} on {size} ranks")
        weights.append(_flatten(parameters))
    elsewhere = [*parameters, *(parameter.grad for parameter in parameters if parameter.grad is not None)]
    everywhere = [optimizer, *vars(sharded).values(), *_list_globals(part)]
    return {"weights": weights, "in place": _flatten(views) == weights[-1], "own": count_kept_numbers(optimizer, elsewhere),
            "kept": count_kept_numbers(everywhere, elsewhere), "sent": sent_bytes.ring_bytes / 8,
            "calls": sent_bytes.calls}  # fmt: skip


def _list_globals(part: Part) -> list[Any]:
    """Return the values of the global variables in the learner's module."""
    return [value for name, value in vars(part.module).items() if not name.startswith("__")]


def _flatten(parameters: list[Any]) -> list[float]:
    return [number for parameter in parameters for number in parameter.detach().flatten().tolist()]


def _reference(
    size: int, *, ranks: str = "mean", kind: str = "AdamW", is_kept: bool = True, **options: Any
) -> list[list[float]]:
    """Return the weights after each step of torch's own optimizer, which gets the gradients of all ranks."""
    import torch

    parameters = _make_parameters()
    make = getattr(torch.optim, kind)
    optimizer = make(parameters, **(VALUES | options))
    weights = []
    for step in range(STEPS):
        optimizer = optimizer if is_kept else make(parameters, **(VALUES | options))
        _give_gradients(parameters, step, list(range(size)), size if ranks == "mean" else 1)
        optimizer.step()
        weights.append(_flatten(parameters))
    return weights


def _shares(size: int) -> list[slice]:
    share = math.ceil(NUMBERS / size)
    return [slice(rank * share, min(NUMBERS, (rank + 1) * share)) for rank in range(size)]


def _apply_own_gradients(size: int) -> list[list[float]]:
    """Return the weights after each step if each rank updates its share with only its own gradient."""
    import torch

    alone = []
    for rank in range(size):
        parameters = _make_parameters()
        optimizer = torch.optim.AdamW(parameters, **VALUES)
        rows = []
        for step in range(STEPS):
            _give_gradients(parameters, step, [rank], 1)
            optimizer.step()
            rows.append(_flatten(parameters))
        alone.append(rows)
    return [
        [number for rank, place in enumerate(_shares(size)) for number in alone[rank][step][place]] for step in range(STEPS)
    ]


def _without_correction(size: int) -> list[list[float]]:
    """Return the weights of an AdamW that does not divide the moments by 1 - beta ** t."""
    import torch

    parameters = _make_parameters()
    weights = torch.cat([parameter.detach().flatten() for parameter in parameters])
    mean, square, rows = torch.zeros_like(weights), torch.zeros_like(weights), []
    for step in range(STEPS):
        _give_gradients(parameters, step, list(range(size)), size)
        gradient = torch.cat([parameter.grad.flatten() for parameter in parameters])
        mean = mean.lerp(gradient, 1 - VALUES["betas"][0])
        square = square.lerp(gradient**2, 1 - VALUES["betas"][1])
        weights = weights * (1 - VALUES["lr"] * VALUES["weight_decay"])
        weights = weights - VALUES["lr"] * mean / (square.sqrt() + VALUES["eps"])
        rows.append(weights.tolist())
    return rows


def _find_gap(answer: list[float], right: list[float]) -> float:
    """Return the largest difference between two numbers, or NaN if one of them is NaN."""
    return max((abs(number - its) for number, its in zip(answer, right, strict=True)), key=lambda off: (math.isnan(off), off))


def _check_weights(part: Part, sharded: Any, size: int, answer: list[list[list[float]]]) -> None:
    begin, case = _flatten(_make_parameters()), f"step 1 on {size} ranks"
    if all(rows[-1] == begin for rows in answer):
        raise part.wrong("not-written", case)
    right = _reference(size)
    if not all(math.isfinite(number) for rows in answer for number in rows[0]):
        raise part.wrong("not-finite", case)
    for rank, rows in enumerate(answer):
        if not _find_gap(rows[0], answer[0][0]) <= TOLERANCE:
            raise part.wrong("not-gathered", case, output=[rows[0] for rows in answer], rank=rank, ranks=size)
    if not all(_find_gap(row, its) <= TOLERANCE for row, its in zip(answer[0], right, strict=True)):
        try:
            _explain_weights(part, size, answer[0], right)
        except Verdict as verdict:
            if verdict.way == "other":
                _vary(part, sharded, size)
            raise


def _explain_weights(part: Part, size: int, answer: list[list[float]], right: list[list[float]]) -> None:
    """Raise the verdict that explains wrong weights. They are the same on all ranks, but differ from AdamW's."""
    begin, case = _flatten(_make_parameters()), f"step 1 on {size} ranks"
    missing = next((place for place in range(NUMBERS) if _stays_at_start(answer, begin, place)), NUMBERS)
    if 0 < NUMBERS - missing < size:
        raise part.wrong("end-forgotten", case, missing=NUMBERS - missing, numbers=NUMBERS, ranks=size)
    same_numbers = {round(number, 6) for number in answer[0]} & {round(number, 6) for number in right[0]}
    if _find_gap(answer[0], right[0]) > TOLERANCE and len(same_numbers) >= NUMBERS - size:
        raise part.wrong("misplaced", case)
    ways = {
        "sum": _reference(size, ranks="sum"),
        "own-gradient": _apply_own_gradients(size),
        "moments-lost": _reference(size, is_kept=False),
        "not-corrected": _without_correction(size),
        "decay-in-gradient": _reference(size, kind="Adam"),
        "no-decay": _reference(size, weight_decay=0.0),
        "decay-without-lr": _reference(size, weight_decay=VALUES["weight_decay"] / VALUES["lr"]),
        "usual-values": _reference(size, **USUAL),
    }
    part.compare(
        [
            Case(f"weights after step {step + 1} on {size} ranks", answer[step], right[step],
                 {way: rows[step] for way, rows in ways.items()}, {"ranks": size})
            for step in range(STEPS)
        ],
        tolerance=TOLERANCE,
    )  # fmt: skip


def _vary(part: Part, sharded: Any, size: int) -> None:
    """Train with simpler settings.

    Raise the verdict on the simplest training run that is wrong, beside the most similar right one.
    """
    settings = [
        {**VALUES, "betas": betas, "eps": eps, "weight_decay": decay}
        for betas, eps, decay in itertools.product(
            ((0.8, 0.8), VALUES["betas"]), (1e-12, VALUES["eps"]), (0.0, VALUES["weight_decay"])
        )
    ]
    cases = []
    for ranks in (1, size):
        trained = part.on_ranks(
            ranks, lambda rank, ranks: [_train(part, sharded, rank, ranks, values)["weights"] for values in settings]
        )[0]
        for values, rows in zip(settings, trained, strict=True):
            knobs = {"ranks": ranks, **{name: values[name] for name in ("betas", "eps", "weight_decay")}}
            words = ", ".join(f"{name} = {value}" for name, value in knobs.items())
            for step, (answer, right) in enumerate(zip(rows, _reference(ranks, **values), strict=True), 1):
                cases.append(Case(f"weights after step {step}, {words}", answer, right, knobs={"step": step, **knobs}))
    part.compare(cases, tolerance=TOLERANCE)


def _stays_at_start(rows: list[list[float]], begin: list[float], place: int) -> bool:
    """Return whether the number at `place` is always 0, or changes only by decay."""
    fade = 1 - VALUES["lr"] * VALUES["weight_decay"]
    first = rows[0][place]
    return min(abs(first - begin[place]), abs(first - fade * begin[place]), abs(first)) < 1e-12


def _check_costs(part: Part, size: int, answer: dict[str, Any]) -> None:
    """Check the numbers kept and sent.

    A rank may keep four numbers for each one of its own share, and send two collectives in rings. Each tensor may be padded
    separately.
    """
    case = f"{size} ranks, {NUMBERS} parameters"
    most = 4 * (math.ceil(NUMBERS / size) + len(SHAPES))
    if size > 1 and answer["kept"] > most:
        way = "keeps-everything" if answer["own"] > most else "kept-elsewhere"
        raise part.wrong(way, case, ranks=size, kept=answer["kept"], numbers=NUMBERS, most=most)
    rings = 2 * (size - 1) / size
    if answer["sent"] > rings * (NUMBERS + size * len(SHAPES)) + 1e-9:
        calls = ", ".join(f"{count} {kind}" for kind, count in answer["calls"].items())
        raise part.wrong("sends-too-much", case, ranks=size, sent=answer["sent"], most=rings * NUMBERS, calls=calls)
