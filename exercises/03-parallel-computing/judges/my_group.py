"""Judge my_group.py of 3.5: the step must be that of the big batch, apart from rounding, and gradients must be sent once."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from gpucourse.judge import Case, Part, Verdict, Way

WAYS = {
    "not-weighted": Way(
        "the step is the sum over {count} pieces instead of their mean, so it is about {count} times too large: weight each "
        "piece by its share of the samples",
        (', reduction="sum") * weight', ")"),
    ),
    "by-count": Way(
        "each piece has the weight 1/{count}, which is right only if all pieces have the same size. Here the last has "
        "{last} samples and the others {first}, so it counts too much. The weight is the piece's samples divided by all "
        "samples of the group",
        (', reduction="sum") * weight', ") / len(pieces)"),
    ),
    "by-full-group": Way(
        "each piece is weighted by its samples divided by those of a full group, but this group is not full: it has {samples} "
        "samples, so the step is too small. Divide by the samples that are really there",
        (', reduction="sum") * weight', ") * len(x) / (len(pieces) * len(pieces[0][0]))"),
    ),
    "by-ranks": Way(
        "the step is too small by the number of ranks, {size}: DistributedDataParallel already divides by it when it averages",
        ("dist.get_world_size() / counted", "1 / counted"),
    ),
    "last-left-out": Way(
        "the last piece is not in the step: {count} pieces need {count} backward passes",
        (
            "enumerate(pieces, start=1):\n        quiet = model.no_sync() if number < len(pieces) else",
            "enumerate(pieces[:-1], start=1):\n        quiet = model.no_sync() if number < len(pieces) - 1 else",
        ),
    ),
    "sum-of-samples": Way(
        "the step is that of the summed loss of each rank's samples, but should be that of the mean of all samples: divide by "
        "their number",
        (" * weight", ""),
    ),
    "only-last": Way(
        "only the last piece is in the step: something resets the gradients between the pieces. backward adds to .grad, so "
        "call zero_grad only before the first piece",
        ("        with quiet:\n", "        optimizer.zero_grad()\n        with quiet:\n"),
    ),
    "from-before": Way(
        "the gradient from before the group is in the step, too: backward adds to .grad, so reset it (zero_grad) "
        "before the first piece",
        ("    optimizer.zero_grad()\n", ""),
    ),
    "sent-each-time": Way(
        "the gradients were averaged over the ranks {count} times for {pieces} pieces, once in each backward. That makes "
        "the same step with {count} times the bytes. Process all pieces but the last inside model.no_sync()",
        ("model.no_sync() if number < len(pieces) else contextlib.nullcontext()", "contextlib.nullcontext()"),
    ),
    "forward-outside": Way(
        "no_sync was entered {entered} times, but the gradients were still sent {count} times. DistributedDataParallel "
        "decides in the forward pass, so model(x) must be inside no_sync, too",
        (
            '        with quiet:\n            loss = cross_entropy(model(x), y, reduction="sum") * weight\n',
            '        loss = cross_entropy(model(x), y, reduction="sum") * weight\n        with quiet:\n',
        ),
    ),
    "never-sent": Way(
        "the gradients were never sent, so each rank used its own, and the models differ now: the last piece must "
        "run outside no_sync",
        ("model.no_sync() if number < len(pieces) else contextlib.nullcontext()", "model.no_sync()"),
    ),
    "around-ddp": Way(
        "the gradients were never sent, and no_sync was not entered: you do not call `model` itself but the module "
        "inside it, so DistributedDataParallel does not take part. Call model(x)",
        (
            "model.no_sync() if number < len(pieces) else contextlib.nullcontext()\n"
            "        with quiet:\n            loss = cross_entropy(model(x), y",
            "contextlib.nullcontext()\n        with quiet:\n            loss = cross_entropy(model.module(x), y",
        ),
    ),
    "sum-over-ranks": Way(
        "the step is the sum over {size} ranks instead of their mean: DistributedDataParallel divides by their number, "
        "but your own all_reduce does not",
        (
            "model.no_sync() if number < len(pieces) else contextlib.nullcontext()\n"
            '        with quiet:\n            loss = cross_entropy(model(x), y, reduction="sum") * weight\n'
            "            loss.backward()\n",
            'model.no_sync()\n        with quiet:\n            loss = cross_entropy(model(x), y, reduction="sum") * weight\n'
            "            loss.backward()\n    for parameter in model.parameters():\n"
            "        torch.distributed.all_reduce(parameter.grad)\n",
        ),
    ),
    "first-sent": Way(
        "the gradients were sent, but not after the last piece: later gradients stayed on each rank, and the models "
        "differ now. Only the last piece may be outside no_sync",
        ("if number < len(pieces)", "if number > 1"),
    ),
    "one-batch": Way(
        "the step is right, but {largest} samples went through the model at once: the batch is in pieces because that many "
        "samples do not fit. Process the pieces one after another",
        (
            "    counted = sum(",
            "    pieces = [(torch.cat([x for x, _ in pieces]), torch.cat([y for _, y in pieces]))]\n    counted = sum(",
        ),
    ),
    "all-kept": Way(
        "the second piece went through the model before backward of the first. Then the activations of all pieces are in "
        "memory at once, as for the big batch. Call backward after each piece",
        (
            '            loss = cross_entropy(model(x), y, reduction="sum") * weight\n            loss.backward()\n',
            '            loss = (loss if number > 1 else 0) + cross_entropy(model(x), y, reduction="sum") * weight\n'
            "            if number == len(pieces):\n                loss.backward()\n",
        ),
    ),
    "own-count": Way(
        "each rank divides by its own samples, and DistributedDataParallel takes the mean of the ranks. Here the ranks have "
        "{counts} samples that count, so a sample weighs more on a rank that has few. Divide by what counts on all ranks",
        ("    dist.all_reduce(counted)\n    weight = dist.get_world_size() / counted", "    weight = 1 / counted"),
    ),
    "ignored-counted": Way(
        "you divide by all {all} samples of the ranks, but only {counted} of them count: those with the label -100 add nothing "
        "to the sum of losses, so the step is too small",
        ("(y != IGNORED).sum()", "torch.tensor(len(y))"),
    ),
    "no-step": Way(
        "the weights did not change: after the last piece, call optimizer.step()",
        ("    optimizer.step()\n", ""),
    ),
    "several-steps": Way(
        "the optimizer took {count} steps: a group of pieces is one step, after the last piece",
        ("            loss.backward()\n    optimizer.step()", "            loss.backward()\n        optimizer.step()"),
    ),
}

GROUPS = {
    1: ((3, 3, 3),),
    2: ((4, 4, 4, 2), (4, 4, 4, 2)),
    3: ((5, 1), (2, 3), (4, 4)),
    4: ((3, 3), (4, 3), (3, 3), (2, 3)),
}
"""Samples of each piece on each rank, by the number of ranks."""
IGNORED = {4: ((2, 0), (1, 3), (0, 0), (0, 2))}
"""How many samples of each piece do not count."""
WIDTH, CLASSES, TOLERANCE = 6, 3, 1e-4  # a count may be in float32


class RankResult(NamedTuple):
    """The results of one group on one rank: the step, the right step, the steps of the mistakes, the number of times that
    gradients were sent, and the backward pass in which they were sent last. All values are the same on all ranks if the part is
    right."""

    step: list[float]
    right: list[float]
    ways: dict[str, list[float]]
    sent: int
    entered: int
    steps: int
    sent_in: int
    passes: list[int]


def judge(part: Part) -> None:
    """Judge groups on one to four ranks: with equal pieces, with a short last piece, with ranks that differ, and with samples
    that do not count."""
    one_group = part.function("one_group")

    def body(rank: int, size: int) -> tuple[Any, ...]:
        return _run(part, one_group, rank, size)

    for size, by_rank in GROUPS.items():
        lengths = by_rank[0]
        text = " and ".join(", ".join(map(str, own)) for own in (by_rank if len(set(by_rank)) > 1 else by_rank[:1]))
        ignored = sum(map(sum, IGNORED.get(size, ())))
        name = f"{size} rank{'s' * (size > 1)}, pieces of {text} samples" + f", {ignored} of them ignored" * (ignored > 0)
        try:
            results = [RankResult(*answer) for answer in part.on_ranks(size, body, limit_s=10.0)]
        except Verdict as verdict:
            says = "it never ended: does one rank call the model, or a collective, more often than the others?"
            raise (Verdict("failed", "hang", says, name) if verdict.way == "hang" else verdict) from None
        _judge_counts(part, results, lengths, name)
        counted = [sum(own) - sum(skipped) for own, skipped in zip(by_rank, IGNORED.get(size, ((0,),) * size), strict=True)]
        values = {"count": len(lengths), "first": lengths[0], "last": lengths[-1], "samples": sum(lengths), "size": size}
        values |= {"all": sum(map(sum, by_rank)), "counted": sum(counted), "counts": ", ".join(map(str, counted))}
        steps = [
            Case(f"{name}, rank {rank}", result.step, result.right, result.ways, values) for rank, result in enumerate(results)
        ]
        with part.trying({"pieces": text}):
            part.compare(steps, tolerance=TOLERANCE)
        _judge_memory(part, results[0], lengths, name)
    part.note(f"the step of the big batch on 1 to {max(GROUPS)} ranks that differ, and one all-reduce of gradients per group")


def _run(part: Part, one_group: Any, rank: int, size: int) -> tuple[Any, ...]:
    """Call the part on one rank. Return its changes and the right changes."""
    import torch
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(WIDTH, 8), torch.nn.Tanh(), torch.nn.Linear(8, CLASSES)).double()
    initial = [torch.randn_like(parameter) for parameter in network.parameters()]  # the same on every rank
    torch.manual_seed(1 + rank)
    pieces = [
        (torch.randn(length, WIDTH, dtype=torch.float64), torch.randint(CLASSES, (length,))) for length in GROUPS[size][rank]
    ]
    for (_, labels), ignored in zip(pieces, IGNORED.get(size, ((),) * size)[rank], strict=False):
        labels[:ignored] = -100
    right, ways = _steps(network, pieces, initial, size)
    model, counts, passes = DistributedDataParallel(network), {"sent": 0, "entered": 0, "steps": 0, "sent_in": 0}, []
    quiet = model.no_sync

    def count_and_send(state, bucket):  # without type hints, because DDP looks at them
        counts["sent"] += 1
        counts["sent_in"] = passes.count(0)
        return allreduce_hook(state, bucket)

    def no_sync() -> Any:
        counts["entered"] += 1
        return quiet()

    def count_step(*_: Any) -> None:
        counts["steps"] += 1

    def note_pass(_: Any, inputs: Any, output: Any) -> None:
        passes.append(len(inputs[0]))
        output.register_hook(lambda _: passes.append(0))

    network.register_forward_hook(note_pass)
    model.register_comm_hook(None, count_and_send)
    model.no_sync = no_sync
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer.register_step_post_hook(count_step)
    start = [parameter.detach().clone() for parameter in network.parameters()]
    for parameter, gradient in zip(network.parameters(), initial, strict=True):
        parameter.grad = gradient
    part.call(one_group, model, optimizer, pieces)
    step = _flat([old - new.detach() for old, new in zip(start, network.parameters(), strict=True)])
    return step, right, ways, counts["sent"], counts["entered"], counts["steps"], counts["sent_in"], passes


def _steps(network: Any, pieces: list[Any], initial: list[Any], size: int) -> tuple[list[float], dict[str, list[float]]]:
    """Return the right update with a learning rate of 1, and the update of each mistake. They are computed without
    DistributedDataParallel."""
    import torch
    import torch.distributed as dist

    sums = []  # of the losses of each piece
    for x, y in pieces:
        loss = torch.nn.functional.cross_entropy(network(x), y, reduction="sum")
        sums.append(torch.cat([gradient.flatten() for gradient in torch.autograd.grad(loss, list(network.parameters()))]))
    lengths = [float(len(x)) for x, _ in pieces]
    counts = [float((y >= 0).sum()) for _, y in pieces]
    means = [total / count for total, count in zip(sums, counts, strict=True)]

    def average(own: Any) -> Any:
        """Return the mean over the ranks, as DistributedDataParallel computes it."""
        result = torch.as_tensor(own, dtype=torch.float64).clone()
        dist.all_reduce(result)
        return result / size

    count, length = average(sum(counts)) * size, average(sum(lengths)) * size  # of all ranks
    right = average(sum(sums)) * size / count
    ways = {
        "not-weighted": average(sum(means)),
        "by-count": average(sum(means) / len(means)),
        "by-full-group": average(
            sum(mean * own for mean, own in zip(means, lengths, strict=True)) / (len(lengths) * lengths[0])
        ),
        "by-ranks": right / size,
        "sum-over-ranks": right * size,
        "last-left-out": right - average(sums[-1]) * size / count,
        "sum-of-samples": average(sum(sums)),
        "only-last": average(sums[-1]) * size / count,
        "from-before": right + torch.cat([gradient.flatten() for gradient in initial]),
        "own-count": average(sum(sums) / sum(counts)),
        "ignored-counted": right * count / length,
    }
    return right.tolist(), {name: way.tolist() for name, way in ways.items()}


def _flat(tensors: list[Any]) -> list[float]:
    return [value for tensor in tensors for value in tensor.flatten().tolist()]


def _judge_counts(part: Part, results: list[RankResult], lengths: tuple[int, ...], name: str) -> None:
    """Check the number of steps, and when gradients were sent. Raises Verdict."""
    first = results[0]
    if first.steps == 0:
        raise part.wrong("no-step", name)
    if first.steps > 1:
        raise part.wrong("several-steps", name, count=first.steps)
    if first.sent == 0 and any(result.step != first.step for result in results):
        raise part.wrong("never-sent" if first.entered else "around-ddp", name)
    if first.sent > 1:
        values = {"count": first.sent, "pieces": len(lengths), "entered": first.entered}
        if not first.entered:
            raise part.wrong("sent-each-time", name, **values)
        if first.entered + first.sent > len(lengths):  # it was entered for pieces that sent nevertheless
            raise part.wrong("forward-outside", name, **values)
        says = (
            "the gradients were sent {count} times for {pieces} pieces, and no_sync was entered {entered} times: only the last "
        )
        raise Verdict("failed", "other", says.format_map(values) + "piece may send", name)
    if any(result.step != first.step for result in results):
        if first.sent_in < first.passes.count(0):
            raise part.wrong("first-sent", name)
        says = "the gradients were sent after the last piece, and then a number that is not the same on all ranks changed them"
        raise Verdict("failed", "other", says, name)


def _judge_memory(part: Part, result: RankResult, lengths: tuple[int, ...], name: str) -> None:
    """Check the memory. `passes` contains the number of samples of each forward pass, and 0 for each backward pass. Raises
    Verdict."""
    if max(result.passes) > max(lengths):
        raise part.wrong("one-batch", name, largest=max(result.passes))
    if any(first and second for first, second in itertools.pairwise(result.passes)):
        raise part.wrong("all-kept", name)
