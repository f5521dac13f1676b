"""Judge my_ddp.py of 3.2 by comparison with DistributedDataParallel: parameters, gradients, and when the all-reduces begin."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpucourse.judge import Case, Part, Verdict, Way
from gpucourse.judge.cases import same

WAYS = {
    "no-broadcast": Way(
        "the ranks begin with different models: {name} of rank {rank} is not rank 0's. Equal gradients keep models equal only "
        "if they were equal before: send rank 0's parameters to all (dist.broadcast), including the frozen ones",
        ("        dist.broadcast(parameter.data, src=0)\n", ""),
    ),
    "not-rank-0": Way(
        "all ranks begin with the same model, but {name} is not what rank 0 had: DistributedDataParallel sends rank 0's "
        "parameters, because rank 0 may have loaded a checkpoint",
        ("src=0", "src=size - 1"),
    ),
    "sum": Way(
        "each gradient is the sum over {size} ranks, but DistributedDataParallel gives the mean: a sum makes every step "
        "{size} times as large. Divide by the number of ranks",
        ("            bucket.div_(size)\n", ""),
    ),
    "own": Way(
        "each rank still has its own gradient: nothing was averaged, so the models drift apart. Is your hook called "
        "when .grad is complete (register_post_accumulate_grad_hook), and does it reduce .grad itself?",
        ("            parameter.register_post_accumulate_grad_hook(begin)", "            pass"),
    ),
    "divided-twice": Way(
        "each gradient is the mean divided once more by {size}",
        ("bucket.div_(size)", "bucket.div_(size**2)"),
    ),
    "not-cleared": Way(
        "the first step is right, but in the second each gradient was divided again: `finish` still has the entries of the "
        "step before. Empty the list when they are done",
        (
            "            bucket.div_(size)\n"
            "            for parameter, mean in zip(parameters, bucket.split([each.numel() for each in parameters]), "
            "strict=True):\n                parameter.grad.copy_(mean.view_as(parameter))\n        pending.clear()\n",
            "            if not hasattr(work, 'unpacked'):\n"
            "                for parameter, total in zip(parameters, bucket.split([p.numel() for p in parameters])):\n"
            "                    parameter.grad.copy_(total.view_as(parameter))\n"
            "                work.unpacked = True\n"
            "        for _, _, parameters in pending:\n            for parameter in parameters:\n"
            "                parameter.grad /= size\n",
        ),
    ),
    "kept": Way(
        "after {steps} steps {kept} of the tensors that you sent still exist, and one step sends at most {sent}: memory grows "
        "with every step. Empty the list of what is sent when it is done",
        ("        pending.clear()\n", ""),
    ),
    "rest-not-sent": Way(
        "some gradients are the mean over all ranks, and others are still this rank's own. When backward is over, the last "
        "bucket may not be full: send it in `finish`",
        ("        if ready:\n            send()\n        for work", "        ready.clear()\n        for work"),
    ),
    "sent-again": Way(
        "in one step rank 0 sent {sent:,} bytes for {right:,} bytes of gradients: some gradients are in several buckets. Empty "
        "the bucket when you send it",
        ("        ready.clear()\n", "        if len(pending) != 1:\n            ready.clear()\n"),
    ),
    "too-many-messages": Way(
        "with buckets of {bucket:,} bytes it sent a message of only {sent:,} bytes before the last one. Each message costs a "
        "latency: wait until the bucket holds `bucket_bytes`",
        (" >= bucket_bytes:", " >= 0:"),
    ),
    "bucket-too-full": Way(
        "with buckets of {bucket:,} bytes it sent a message of {sent:,}, although no gradient here has more than {largest:,}. "
        "As long as a full bucket is not sent, the network is idle",
        (" >= bucket_bytes:", " >= 2 * bucket_bytes + 2000:"),
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
            "work = dist.all_reduce(bucket, async_op=True)",
            "every = [torch.empty_like(bucket) for _ in range(size)]\n        dist.all_gather(every, bucket)\n"
            "        bucket = sum(every)\n        work = torch.futures.collect_all([])",
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
        ("        pending.append((work, bucket", "        work.wait()\n        pending.append((work, bucket"),
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
            "            work.wait()\n            bucket.div_(size)\n",
            "            bucket.div_(size)\n            work.wait()\n",
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

CASES = {3: 1500, 2: 0, 1: 1500, 4: 2600}  # ranks and bytes of a bucket; on 2 ranks, dividing by n - 1 changes nothing
STEPS = 3
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
    sizes: list[int]


def judge(part: Part) -> None:
    """Judge three steps on one to four ranks. They must equal DistributedDataParallel's, and must send while backward
    continues."""
    from reductions import Log, watch

    log = Log()
    watch(log)
    share = part.function("share_gradients")

    def body(rank: int, size: int) -> tuple[Any, ...]:
        return _run(part, share, log, rank, CASES[size])

    overlaps = 0
    for size, bucket in CASES.items():
        name = f"{size} rank{'s' * (size > 1)}, buckets of {bucket:,} bytes"
        try:
            answers = part.on_ranks(size, body, limit_s=10.0)
        except Verdict as verdict:
            raise (Verdict("failed", "hang", HANG, name) if verdict.way == "hang" else verdict) from None
        _judge_start(part, [start for start, _, _ in answers], name)
        steps = [[Step(*step) for step in rank_steps] for _, rank_steps, _ in answers]
        for own_steps in steps:
            _judge_waits(part, own_steps, name)
        for own_steps in steps:
            _judge_gradients(part, own_steps, size, name)
        _judge_messages(part, steps[0][-1], bucket, name)
        if (kept_count := answers[0][2]) > (sent := max(len(step.sizes) for step in steps[0])):
            raise part.wrong("kept", name, steps=STEPS, kept=kept_count, sent=sent)
        if size > 1:
            overlaps = _judge_overlap(part, steps[0][-1].events, name)
    part.note(
        f"equal to DistributedDataParallel on 1 to {max(CASES)} ranks, in buckets of 0 to 2,600 bytes; {overlaps} "
        f"all-reduce{'s' if overlaps != 1 else ''} began before backward was over"
    )


def _run(part: Part, share: Any, log: Any, rank: int, bucket: int) -> tuple[Any, ...]:
    """Return, for one rank, the parameters after the start, the steps, and how many sent tensors still exist after them.

    The steps end when a gradient is wrong on any rank, so that the next step cannot fail as a consequence.
    """
    import copy

    import torch
    from reductions import ORIGINAL, WIDTH, Log, Net
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(rank)  # a different model on each rank, as if the ranks had not agreed
    model = Net(log)
    twin, alone = copy.deepcopy(model), copy.deepcopy(model)
    twin.log = alone.log = Log()
    finish = _call(part, share, model, bucket)
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
        steps.append((*gradients, log.events, log.never_waited, log.changed_early, log.sizes))
        is_wrong = torch.tensor(0.0 if same(gradients[0], gradients[1], 1e-9) else 1.0)
        ORIGINAL(is_wrong)
        if is_wrong.item():
            break
        for network in (model, twin, alone):  # from here on all three have the right parameters
            network.load_state_dict(twin.state_dict())
    model.zero_grad(set_to_none=True)
    return start, steps, log.count_kept()


def _call(part: Part, function: Any, *arguments: Any) -> Any:
    """Return the result of the learner's function. Two errors of torch get special messages."""
    try:
        return part.call(function, *arguments)
    except Verdict as verdict:
        if "doesn't require gradient" in verdict.says:
            raise part.wrong("frozen") from None
        if "NoneType" in verdict.says:
            raise part.wrong("no-gradient", says=verdict.says) from None
        raise


def _gradients(model: Any) -> list[Any]:
    """Return each gradient of a model as a list, or None for a parameter without a gradient."""
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
        ways["rest-not-sent"] = _mix(step)
        ways["not-cleared"] = _times(step.right, size**-number)
        pairs = zip(step.given, step.right, strict=True)
        ways["zeros"] = [answer if right is None and answer and not any(answer) else right for answer, right in pairs]
        cases.append(Case(f"{name}, step {number + 1}", step.given, step.right, ways, {"size": size}))
    part.compare(cases)


def _mix(step: Step) -> list[Any]:
    """Return, for a part that does not send all gradients, this rank's own gradient if the part returned it, otherwise the
    mean over the ranks. If the part returned this rank's own gradients for all parameters, return the means."""
    mixed = [
        own if own is not None and answer == own else right
        for answer, own, right in zip(step.given, step.own, step.right, strict=True)
    ]
    return mixed if mixed != step.own else step.right


def _judge_messages(part: Part, step: Step, bucket: int, name: str) -> None:
    """Judge the bytes of each all-reduce of one step. Raises Verdict."""
    sizes = [8 * len(gradient) for gradient in step.right if gradient is not None]
    if not step.sizes:
        raise part.wrong("no-all-reduce", name)
    if sum(step.sizes) > sum(sizes):
        raise part.wrong("sent-again", name, sent=sum(step.sizes), right=sum(sizes))
    if step.sizes[:-1] and min(step.sizes[:-1]) < bucket:
        raise part.wrong("too-many-messages", name, bucket=bucket, sent=min(step.sizes[:-1]))
    if max(step.sizes) >= max(1, bucket) + max(sizes):
        raise part.wrong("bucket-too-full", name, bucket=bucket, sent=max(step.sizes), largest=max(sizes))


def _times(gradients: list[Any], factor: float) -> list[Any]:
    return [None if gradient is None else [value * factor for value in gradient] for gradient in gradients]


def _judge_overlap(part: Part, events: list[str], name: str) -> int:
    """Return how many all-reduces began before the last layer of backward. Raises Verdict if none did."""
    layers = [place for place, event in enumerate(events) if event.startswith("layer")]
    overlaps = [place for place, event in enumerate(events) if event.startswith("reduce") and place < layers[-1]]
    if not overlaps:
        raise part.wrong("no-overlap", name, count=sum(event.startswith("reduce") for event in events))
    waits = {place: events[place].replace("reduce", "wait") for place in overlaps}
    if not any(waits[place] not in events[place:layer] for place in overlaps for layer in layers if layer > place):
        raise part.wrong("blocking", name)
    return len(overlaps)
