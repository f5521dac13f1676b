"""Judge my_muon.py of 9.7 on real ranks: the weights after each step, and what each rank computes, keeps and sends."""

from __future__ import annotations

import math
from typing import Any

from gpucourse.judge import Part, Verdict, Way

LR, MOMENTUM, DECAY, STEPS, TOLERANCE = 0.1, 0.9, 0.3, 3, 1e-8
SHAPES = {
    "embedding.weight": (7, 8), "a.up": (16, 8), "a.norm": (8,), "a.down": (8, 16), "a.out": (8, 8), "b.wide": (6, 16),
    "b.bias": (16,), "b.out": (8, 8), "b.small": (4, 8), "head.weight": (7, 8),
}  # fmt: skip
WAYS = {
    "own-rows": Way(
        "each rank orthogonalised some rows of {name}: the singular directions of a slice differ from the matrix's. One rank "
        "needs all of it",
        (
            "step = self.orthogonalise(direction)",
            "step = torch.cat([self.orthogonalise(rows) for rows in direction.chunk(self.ranks)])",
        ),
    ),
    "before-the-mean": Way(
        "{name} got the mean of orthogonal matrices, which is not orthogonal: first the mean of the gradients, "
        "then orthogonalise",
        (
            "            gradient = weight.grad.clone()\n            dist.reduce(gradient, self.owners[place])\n",
            "            gradient = self.orthogonalise(weight.grad)\n            dist.reduce(gradient, self.owners[place])\n"
            "            if self.owners[place] == self.rank:\n                gradient /= self.ranks\n"
            "                factor = math.sqrt(max(1, weight.shape[0] / weight.shape[1]))\n"
            "                weight.mul_(1 - self.lr * self.weight_decay).sub_(self.lr * factor * gradient)\n"
            "            continue\n",
        ),
    ),
    "momentum-after": Way(
        "step 1 has the right direction, but is {times:.3g} times as long as it should be in {name}: the momentum collected "
        "what was already orthogonal. Collect gradients, and orthogonalise their mixture",
        (
            "        buffer.lerp_(gradient, 1 - self.momentum)\n        direction = gradient.lerp(buffer, self.momentum)\n"
            "        step = self.orthogonalise(direction)\n",
            "        gradient = self.orthogonalise(gradient)\n        buffer.lerp_(gradient, 1 - self.momentum)\n"
            "        step = gradient.lerp(buffer, self.momentum)\n",
        ),
    ),
    "own-gradient": Way(
        "{name} got the gradient of one rank only, that of rank {rank}: every rank has seen other samples",
        ("            dist.reduce(gradient, self.owners[place])\n", ""),
    ),
    "no-momentum": Way(
        "step 1 is right, and step 2 in {name} is again a first step: the momentum was lost",
        ("buffer.lerp_(gradient, 1 - self.momentum)", "buffer.zero_().lerp_(gradient, 1 - self.momentum)"),
    ),
    "no-look-ahead": Way(
        "the direction of step {number} in {name} is the momentum itself. Muon mixes it with the new gradient "
        "once more (Nesterov)",
        ("direction = gradient.lerp(buffer, self.momentum)", "direction = buffer"),
    ),
    "shape-scale": Way(
        "{name} is {rows} x {columns}, and its step is {times:.3g} times what it should be: a step grows with "
        "sqrt(max(1, rows / columns))",
        ("self.lr * math.sqrt(max(1, weight.shape[0] / weight.shape[1])) * step", "self.lr * step"),
    ),
    "no-decay": Way(
        "the weights do not decay: W is multiplied by 1 - lr weight_decay in each step",
        ("weight.mul_(1 - self.lr * self.weight_decay)", "weight.mul_(1)"),
    ),
    "decay-in-gradient": Way(
        "the decay of {name} was added to the gradient, before the iteration that forgets all sizes. It is applied to the "
        "weight itself",
        (
            "        step = self.orthogonalise(direction)\n        weight.mul_(1 - self.lr * self.weight_decay)\n",
            "        step = self.orthogonalise(direction + self.weight_decay * weight)\n",
        ),
    ),
    "vectors-too": Way(
        "{name} {shape} is not a hidden matrix, but was changed: norms, biases, embedding and head belong to AdamW",
        ("p.dim() == 2 and not name.startswith((\"embedding\", \"head\"))", "p.dim() == 2"),
    ),
    "wrong-root": Way(
        "{name} has its old values on all ranks, even on the one that updated it: the broadcast begins at another rank, and "
        "overwrites the new values",
        ("            dist.broadcast(weight, self.owners[place])", "            dist.broadcast(weight, place % self.ranks)"),
    ),
    "not-sent": Way(
        "rank {rank} still has the old weights of {name}, and rank {other} has new ones: who sends them to all ranks?",
        ("            dist.broadcast(weight, self.owners[place])", "            continue"),
    ),
    "momentum-everywhere": Way(
        "with {ranks} ranks, rank {rank} keeps {kept:,} numbers from one step to the next; its own matrices have {right:,}: "
        "then nothing is shared",
        (
            "owned = [place for place, owner in enumerate(self.owners) if owner == self.rank]",
            "owned = range(len(self.matrices))",
        ),
    ),
    "everywhere": Way(
        "with {ranks} ranks, {count} ranks orthogonalise {name}: one is enough, and sends the result",
        (
            "            dist.reduce(gradient, self.owners[place])\n            if self.owners[place] == self.rank:\n",
            "            dist.all_reduce(gradient)\n            self.buffers.setdefault(place, torch.zeros_like(weight))\n"
            "            if True:\n",
        ),
    ),
    "dealt-round": Way(
        "with {ranks} ranks, rank {rank} has {times:.2f} times the mean work: matrices differ in size. Give "
        "the largest first, each "
        "to the rank that has the least work so far",
        ("owner = loads.index(min(loads))", "owner = place % self.ranks"),
    ),
    "sends-too-much": Way(
        "with {ranks} ranks each sends {sent:,.0f} numbers a step; {limit:,.0f} are enough. Only the rank that has the matrix "
        "needs the sum of its gradients",
        ("dist.reduce(gradient, self.owners[place])", "dist.all_reduce(gradient)"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge three steps on 3, 4 and 2 ranks, with different gradients on each rank and in each step."""
    import shard_bytes  # noqa: F401  # before the ranks are forked

    sharded = part.function("ShardedMuon")
    for size in (3, 4, 2):
        answers = part.on_ranks(size, lambda rank, size: _train(part, sharded, rank, size))
        _check_equal(part, size, answers)
        _check_weights(part, size, answers)
        _check_costs(part, size, answers)
    part.note(f"Muon's weights after each of {STEPS} steps, on 2, 3 and 4 ranks")
    part.note("each matrix orthogonalised once, its momentum kept once, the work divided by FLOPs")


def _draw(name: str, step: int, rank: int) -> Any:
    import torch

    seed = 1 + list(SHAPES).index(name) + 100 * step + 10_000 * rank
    return torch.randn(SHAPES[name], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _make_parameters() -> dict[str, Any]:
    import torch

    return {name: torch.nn.Parameter(_draw(name, 0, 0)) for name in SHAPES}


def _is_hidden(name: str) -> bool:
    return len(SHAPES[name]) == 2 and not name.startswith(("embedding", "head"))


def _polar(matrix: Any) -> Any:
    """Return the matrix with all singular values 1. The judge's Muon uses it, so that its weights are exact."""
    import torch

    u, _, vt = torch.linalg.svd(matrix, full_matrices=False)
    return u @ vt


def _work(shape: Any) -> int:
    m, n = sorted(shape)
    return 4 * m * m * n + 2 * m**3


def _train(part: Part, sharded: Any, rank: int, size: int) -> dict[str, Any]:
    """Return this rank's weights after each step.

    For the last step, also return the shapes that were orthogonalised, and how many numbers the rank kept and sent.
    """
    import torch
    from shard_bytes import SentBytes, count_kept_numbers

    calls: list[tuple[int, ...]] = []

    def orthogonalise(matrix: Any) -> Any:
        if not isinstance(matrix, torch.Tensor) or matrix.dim() != 2:
            raise Verdict(
                "failed", "other", f"orthogonalise was called with {type(matrix).__name__} of another shape than a matrix"
            )
        calls.append(tuple(matrix.shape))
        return _polar(matrix.detach())

    parameters = _make_parameters()
    case = f"{size} ranks"
    optimizer = part.call(sharded, parameters, LR, MOMENTUM, DECAY, orthogonalise, case=case)
    rows = []
    for step in range(1, STEPS + 1):
        for name, weight in parameters.items():
            weight.grad = _draw(name, step, rank + 1)
        calls.clear()
        with SentBytes(size) as sent:
            part.call(optimizer.step, case=f"step {step} on {case}")
        rows.append({name: weight.detach().clone().tolist() for name, weight in parameters.items()})
    elsewhere = [*parameters.values(), *(weight.grad for weight in parameters.values() if weight.grad is not None)]
    holders = [optimizer, *vars(sharded).values(), *(v for k, v in vars(part.module).items() if not k.startswith("__"))]
    return {"weights": rows, "calls": list(calls), "kept": count_kept_numbers(holders, elsewhere), "sent": sent.ring_bytes / 8}


def _check_equal(part: Part, size: int, answers: list[dict[str, Any]]) -> None:
    """Raise the verdict if the weights of two ranks differ, or if a parameter changed that is not Muon's."""
    import torch

    case = f"step 1 on {size} ranks"
    rows = [
        {name: torch.tensor(values, dtype=torch.float64) for name, values in answer["weights"][0].items()} for answer in answers
    ]
    for name, shape in SHAPES.items():
        start = _draw(name, 0, 0)
        moved = [not torch.allclose(row[name], start, rtol=0, atol=1e-12) for row in rows]
        if not _is_hidden(name) and any(moved):
            raise part.wrong("vectors-too", case, name=name, shape=list(shape))
    moved = {name: [not torch.allclose(row[name], _draw(name, 0, 0), rtol=0, atol=1e-12) for row in rows] for name in SHAPES}
    hidden = list(filter(_is_hidden, SHAPES))
    for name in hidden:
        if any(moved[name]) and not all(moved[name]):
            raise part.wrong("not-sent", case, name=name, rank=moved[name].index(False), other=moved[name].index(True))
        if not any(moved[name]) and any(any(moved[other]) for other in hidden):
            raise part.wrong("wrong-root", case, name=name)
    for name in filter(_is_hidden, SHAPES):
        if any(not torch.allclose(row[name], rows[0][name], rtol=0, atol=TOLERANCE) for row in rows):
            text = f"the ranks have different weights in {name}: every rank must get those of the rank that updated it"
            raise Verdict("failed", "other", text, case)


def _reference(size: int, way: str = "") -> list[dict[str, Any]]:
    """Return the weights after each step of a Muon in one process, or of one with a mistake."""
    import torch

    weights = {name: _draw(name, 0, 0) for name in SHAPES}
    buffers = {name: torch.zeros_like(weights[name]) for name in SHAPES}
    rows = []
    for step in range(1, STEPS + 1):
        for name in filter(_is_hidden, SHAPES):
            gradients = [_draw(name, step, rank + 1) for rank in range(size)]
            gradient = sum(gradients) / size
            if way.startswith("own-gradient"):
                gradient = gradients[int(way[-1])]
            if way == "momentum-after":
                gradient = _polar(gradient)
            if way == "no-momentum":
                buffers[name].zero_()
            buffers[name].lerp_(gradient, 1 - MOMENTUM)
            direction = buffers[name] if way == "no-look-ahead" else gradient.lerp(buffers[name], MOMENTUM)
            if way == "decay-in-gradient":
                direction = direction + DECAY * weights[name]
            if way == "own-rows":
                change = torch.cat([_polar(piece) for piece in direction.chunk(size)])
            elif way == "before-the-mean":
                change = sum(map(_polar, gradients)) / size
            else:
                change = direction if way == "momentum-after" else _polar(direction)
            rows_, columns = SHAPES[name]
            factor = 1 if way == "shape-scale" else math.sqrt(max(1, rows_ / columns))
            decay = 0 if way in ("no-decay", "decay-in-gradient") else DECAY
            weights[name] = weights[name] * (1 - LR * decay) - LR * factor * change
        rows.append(dict(weights))
    return rows


def _check_weights(part: Part, size: int, answers: list[dict[str, Any]]) -> None:
    """Raise the verdict if weights differ from those of Muon in one process."""
    import torch

    rows = [{name: torch.tensor(values, dtype=torch.float64) for name, values in row.items()} for row in answers[0]["weights"]]
    right = _reference(size)

    def equals(answer: dict[str, Any], its: dict[str, Any], names: Any = SHAPES) -> bool:
        return all(torch.allclose(answer[name], its[name], rtol=0, atol=TOLERANCE) for name in names)

    for step in range(STEPS):
        if equals(rows[step], right[step]):
            continue
        case = f"step {step + 1} on {size} ranks"
        name = next(name for name in SHAPES if not equals(rows[step], right[step], [name]))
        start = _draw(name, 0, 0) if step == 0 else right[step - 1][name]
        change, its = rows[step][name] - (1 - LR * DECAY) * start, right[step][name] - (1 - LR * DECAY) * start
        values = {"name": name, "number": step + 1, "rows": SHAPES[name][0], "columns": SHAPES[name][1],
                  "times": float(change.norm() / its.norm())}  # fmt: skip
        names = ("own-rows", "before-the-mean", "momentum-after", "no-momentum", "no-look-ahead", "shape-scale", "no-decay",
                 "decay-in-gradient")  # fmt: skip
        for way in names:
            wrong = _reference(size, way)
            if equals(rows[step], wrong[step]):
                raise part.wrong(way, case, **values)
        for rank in range(size):
            if equals(rows[step], _reference(size, f"own-gradient {rank}")[step], [name]):
                raise part.wrong("own-gradient", case, rank=rank, **values)
        text = f"{name} is off by {float((rows[step][name] - right[step][name]).abs().max()):.2g} from Muon in one process"
        raise Verdict("failed", "other", text, case)


def _check_costs(part: Part, size: int, answers: list[dict[str, Any]]) -> None:
    """Raise the verdict if a rank has too much work, if two ranks keep the same momentum, or if too many bytes are sent."""
    case = f"{size} ranks"
    hidden = [SHAPES[name] for name in SHAPES if _is_hidden(name)]
    for name in filter(_is_hidden, SHAPES):
        needed = hidden.count(SHAPES[name])
        count = sum(answer["calls"].count(SHAPES[name]) for answer in answers)
        if count > needed:
            raise part.wrong("everywhere", case, ranks=size, name=name, count=count // needed)
    for rank, answer in enumerate(answers):
        numbers = sum(math.prod(shape) for shape in answer["calls"])
        if answer["kept"] > 2 * numbers + 64:
            raise part.wrong("momentum-everywhere", case, ranks=size, rank=rank, kept=answer["kept"], right=numbers)
    works = [sum(map(_work, answer["calls"])) for answer in answers]
    mean = sum(map(_work, hidden)) / size
    if max(works) > 1.2 * mean:
        raise part.wrong("dealt-round", case, ranks=size, rank=works.index(max(works)), times=max(works) / mean)
    least = 2 * (size - 1) / size * sum(map(math.prod, hidden))
    sent = max(answer["sent"] for answer in answers)
    if sent > 1.3 * least:  # shares may be padded
        raise part.wrong("sends-too-much", case, ranks=size, sent=sent, limit=least)
