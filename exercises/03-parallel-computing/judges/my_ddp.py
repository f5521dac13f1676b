"""Judges my_ddp.py of 3.2 by comparison with DistributedDataParallel: parameters, gradients, and when the all-reduces begin."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpucourse.judge import Case, Part, Verdict, Way

WAYS = {
    "no-broadcast": Way(
        "the ranks begin with different models: {name} of rank {rank} is not rank 0's. Equal gradients keep models equal only "
        "if they were equal before: send rank 0's parameters to all (dist.broadcast), including the frozen ones",
        ("        dist.broadcast(parameter.data, src=0)\n", ""),
    ),
    "not-rank-0": Way(
        "all ranks begin with the same model, but {name} is not what rank 0 had: DistributedDataParallel sends rank 0's "
        "parameters, because it is rank 0 that loads a checkpoint",
        ("src=0", "src=size - 1"),
    ),
    "sum": Way(
        "each gradient is the sum over {size} ranks, but DistributedDataParallel gives the mean: a sum makes every step "
        "{size} times as large. Divide by the number of ranks",
        ("            parameter.grad /= size\n", ""),
    ),
    "own": Way(
        "each rank still has its own gradient: nothing was averaged, so the models drift apart. Is your hook called "
        "when .grad is complete (register_post_accumulate_grad_hook), and does it reduce .grad itself?",
        ("            parameter.register_post_accumulate_grad_hook(begin)", "            pass"),
    ),
    "divided-twice": Way(
        "each gradient is the mean divided once more by {size}",
        ("parameter.grad /= size", "parameter.grad /= size**2"),
    ),
    "not-cleared": Way(
        "the first step is right, but in the second each gradient was divided again: `finish` still has the entries of the "
        "step before. Empty the list when they are done",
        ("        pending.clear()\n", ""),
    ),
    "zeros": Way(
        "it made a gradient of zeros for a parameter without a gradient. With momentum or weight decay, the optimizer then "
        "moves that parameter. Leave its .grad None",
        (
            "        pending.clear()\n",
            "        pending.clear()\n        for parameter in model.parameters():\n"
            "            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad\n",
        ),
    ),
    "no-all-reduce": Way(
        "the gradients are right, but none went through dist.all_reduce: a collective that sends every rank's gradient to "
        "every rank (all_gather) needs n/2 times the bytes",
        (
            "work = dist.all_reduce(parameter.grad, async_op=True)",
            "every = [torch.empty_like(parameter.grad) for _ in range(size)]\n        dist.all_gather(every, parameter.grad)\n"
            "        parameter.grad = sum(every)\n        work = torch.futures.collect_all([])",
        ),
    ),
    "no-overlap": Way(
        "all {count} all-reduces began after the whole backward pass was over, so the network was idle while the processor "
        "computed. The gradient of the last layer is complete first: start its all-reduce then, in a hook",
        (
            "            parameter.register_post_accumulate_grad_hook(begin)\n    return finish\n",
            "            pass\n    begin_all = lambda: [begin(p) for p in model.parameters() if p.grad is not None]\n"
            "    return lambda: (begin_all(), finish())[1]\n",
        ),
    ),
    "blocking": Way(
        "backward stopped during each all-reduce, because the hook waited for it. Start it with async_op=True, keep what it "
        "returns, and wait in `finish`",
        ("        pending.append((work, parameter))", "        work.wait()\n        pending.append((work, parameter))"),
    ),
    "not-waited": Way(
        "`finish` returned while {count} all-reduces were still running, so the optimizer reads undefined values. Call "
        "wait() on what each of them returned",
        ("            work.wait()\n", ""),
    ),
    "changed-early": Way(
        "a gradient was changed between its all_reduce and the wait for it, while its sum was still being computed. Wait "
        "first, then divide; or divide before you send",
        (
            "            work.wait()\n            parameter.grad /= size\n",
            "            parameter.grad /= size\n            work.wait()\n",
        ),
    ),
    "no-gradient": Way(
        "it failed on a parameter that got no gradient in this pass ({says}). No hook was called for that parameter, and "
        "its .grad is None. In `finish`, use only what the hooks have started",
        (
            "        pending.clear()\n",
            "        pending.clear()\n        sum(parameter.grad.sum() for parameter in model.parameters())\n",
        ),
    ),
    "frozen": Way(
        "it put a hook on a parameter with requires_grad=False, which never gets a gradient: give it no hook, but send it "
        "at the start like all others",
        ("        if parameter.requires_grad:\n", "        if True:\n"),
    ),
    "no-finish": Way(
        "share_gradients returned {given}, but must return the function `finish` itself, which the training calls "
        "after each backward",
        ("    return finish\n", "    return finish()\n"),
    ),
}

SIZES, STEPS = (3, 2, 1, 4), 3  # on 2 ranks, dividing by n - 1 would be the sum
HANG = (
    "it never ended: does `finish` wait for a hook that is never called (a parameter without a gradient), or does one rank "
    "call a collective more often than the others?"
)


class Step(NamedTuple):
    """One step on one rank: the gradients of the part, of DistributedDataParallel and of this rank alone, and the events."""

    given: list[Any]
    right: list[Any]
    own: list[Any]
    events: list[str]
    never_waited: int
    changed_early: bool


def judge(part: Part) -> None:
    """Judge three steps on one to four ranks. They must equal DistributedDataParallel's, and must send while backward
    continues."""
    from reductions import Log, watch

    log = Log()
    watch(log)
    share = part.function("share_gradients")

    def body(rank: int, _: int) -> tuple[Any, ...]:
        return _run(part, share, log, rank)

    early = 0
    for size in SIZES:
        name = f"{size} rank{'s' * (size > 1)}"
        try:
            answers = part.on_ranks(size, body, limit_s=10.0)
        except Verdict as verdict:
            raise (Verdict("failed", "hang", HANG, name) if verdict.way == "hang" else verdict) from None
        _judge_start(part, [start for start, _ in answers], name)
        steps = [[Step(*step) for step in rank_steps] for _, rank_steps in answers]
        for own_steps in steps:
            _judge_waits(part, own_steps, name)
        for own_steps in steps:
            _judge_gradients(part, own_steps, size, name)
        if size > 1:
            early = _judge_overlap(part, steps[0][-1].events, name)
    part.note(
        f"equal to DistributedDataParallel on 1 to {max(SIZES)} ranks; {early} all-reduces began before backward was over"
    )


def _run(part: Part, share: Any, log: Any, rank: int) -> tuple[Any, ...]:
    """Return the parameters after the start, and the steps, of one rank."""
    import copy

    import torch
    from reductions import WIDTH, Log, Net
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(rank)  # a different model on each rank, as if the ranks had not agreed
    model = Net(log)
    twin, alone = copy.deepcopy(model), copy.deepcopy(model)
    twin.log = alone.log = Log()
    finish = _call(part, share, model)
    if not callable(finish):
        raise part.wrong("no-finish", given=type(finish).__name__ if finish is not None else "None")
    start = [(name, parameter.detach().tolist()) for name, parameter in model.named_parameters()]
    start = [
        (name, values, own_parameter.tolist()) for (name, values), own_parameter in zip(start, alone.parameters(), strict=True)
    ]
    reference = DistributedDataParallel(twin, find_unused_parameters=True)
    alone.load_state_dict(twin.state_dict())  # with rank 0's parameters, which DistributedDataParallel has sent
    steps = []
    for number in range(STEPS):
        x = torch.randn(4, WIDTH, dtype=torch.float64)
        log.restart()
        for network in (model, reference, alone):
            network.zero_grad(set_to_none=number != 2)
            network(x).square().mean().backward()
        _call(part, finish)
        gradients = [_gradients(network) for network in (model, twin, alone)]
        steps.append((*gradients, log.events, log.never_waited, log.changed_early))
        for network in (model, twin, alone):  # from here on all three have the right parameters
            network.load_state_dict(twin.state_dict())
    return start, steps


def _call(part: Part, function: Any, *arguments: Any) -> Any:
    """Call the learner's function. Two errors of torch get special messages."""
    try:
        return part.call(function, *arguments)
    except Verdict as verdict:
        if "doesn't require gradient" in verdict.says:
            raise part.wrong("frozen") from None
        if "NoneType" in verdict.says:
            raise part.wrong("no-gradient", says=verdict.says) from None
        raise


def _gradients(model: Any) -> list[Any]:
    """Return every gradient of a model as a list, or None where there is none."""
    return [None if parameter.grad is None else parameter.grad.flatten().tolist() for parameter in model.parameters()]


def _judge_start(part: Part, starts: list[list[tuple[str, Any, Any]]], name: str) -> None:
    """Judge the parameters after the start. For each rank, `starts` contains each parameter's name, its value now, and its
    value before."""
    for rank, start in enumerate(starts):
        for (parameter, values, _), (_, of_first, _) in zip(start, starts[0], strict=True):
            if values != of_first:
                raise part.wrong("no-broadcast", name, name=parameter, rank=rank)
    for parameter, values, initial in starts[0]:
        if values != initial:
            raise part.wrong("not-rank-0", name, name=parameter)


def _judge_waits(part: Part, steps: list[Step], name: str) -> None:
    for number, step in enumerate(steps):
        if step.never_waited:
            raise part.wrong("not-waited", name, count=step.never_waited)
        if step.changed_early:
            raise part.wrong("not-cleared" if number else "changed-early", name)


def _judge_gradients(part: Part, steps: list[Step], size: int, name: str) -> None:
    cases = []
    for number, step in enumerate(steps):
        ways = {"sum": _times(step.right, size), "own": step.own, "divided-twice": _times(step.right, 1 / size)}
        ways["not-cleared"] = _times(step.right, size**-number)
        pairs = zip(step.given, step.right, strict=True)
        ways["zeros"] = [answer if right is None and answer and not any(answer) else right for answer, right in pairs]
        cases.append(Case(f"{name}, step {number + 1}", step.given, step.right, ways, {"size": size}))
    part.compare(cases)


def _times(gradients: list[Any], factor: float) -> list[Any]:
    return [None if gradient is None else [value * factor for value in gradient] for gradient in gradients]


def _judge_overlap(part: Part, events: list[str], name: str) -> int:
    """Return how many all-reduces began before the last layer of backward. Raises Verdict if none did."""
    layers = [place for place, event in enumerate(events) if event.startswith("layer")]
    early = [place for place, event in enumerate(events) if event.startswith("reduce") and place < layers[-1]]
    if not any(event.startswith("reduce") for event in events):
        raise part.wrong("no-all-reduce", name)
    if not early:
        raise part.wrong("no-overlap", name, count=sum(event.startswith("reduce") for event in events))
    ends = {place: events.index(events[place].replace("reduce", "wait")) for place in early}
    if not any(place < layer < ends[place] for place in early for layer in layers):
        raise part.wrong("blocking", name)
    return len(early)
