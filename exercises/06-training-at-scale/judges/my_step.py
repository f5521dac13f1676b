"""Judge my_step.py of 6.1: it must train as the plain step does, whether batches divide evenly or not. Then its memory is
judged.

The comparison uses plain SGD. AdamW divides by the size of the gradients, which would hide a wrong factor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from gpucourse.judge import Part, Verdict, Way

LAYERS, WIDTH, LENGTH, VOCABULARY, HEADS = 4, 32, 64, 64, 1
BATCHES, LARGE = (8, 7, 1), 16  # sequences
RATE, STEPS, TOLERANCE = 0.5, 2, 1e-5
STEEP = 100.0  # times the weights of the last layer: gradients are larger by that factor, which shows clipping
MAX_MEMORY, MAX_LONG, MAX_WORK = 0.3, 0.35, 1.4  # of the plain step: 16 sequences, one long sequence, operations
MAX_DIFFERENCE = 1e-4  # of a weight, with AdamW
CPU = torch.device("cpu")
WAYS = {
    "all-at-once": Way(
        "its peak is {share:.0%} of the plain step's, but may be at most {limit:.0%}. It takes all sequences together: "
        "even if each block is computed again, the inputs of all blocks and the scores of the whole batch are held",
        (
            "    for part in batch.to(device).chunk(PARTS):\n"
            "        x = model.token(part[:, :-1]) + model.place\n"
            "        for block in model.blocks:\n"
            "            x = checkpoint(block, x, use_reentrant=False)\n"
            "        x = model.norm(x)\n"
            "        rows = x.detach().flatten(0, 1).requires_grad_()\n"
            "        for few, right in zip(rows.split(TOKENS), part[:, 1:].flatten().split(TOKENS), strict=True):\n"
            "            loss = nn.functional.cross_entropy(model.scores(few), right)\n"
            "            loss = loss * len(right) / batch[:, 1:].numel()\n"
            "            loss.backward()\n"
            "            total += loss.detach()\n"
            "        x.backward(rows.grad.view_as(x))\n"
            "    optimizer.step()\n"
            "    return total\n",
            "    for part in batch.to(device).chunk(1):\n"
            "        x = model.token(part[:, :-1]) + model.place\n"
            "        for block in model.blocks:\n"
            "            x = checkpoint(block, x, use_reentrant=False)\n"
            "        scores = model.scores(model.norm(x))\n"
            "        loss = nn.functional.cross_entropy(scores.flatten(0, 1), part[:, 1:].flatten())\n"
            "        loss.backward()\n        total += loss.detach()\n"
            "    optimizer.step()\n    return total\n",
        ),
    ),
    "one-backward": Way(
        "its peak is {share:.0%} of the plain step's, although it takes the batch in {calls} parts: backward runs once, at "
        "the end, and until then the graph of every part is held. Call backward for each part",
        (
            "            x = checkpoint(block, x, use_reentrant=False)\n"
            "        x = model.norm(x)\n"
            "        rows = x.detach().flatten(0, 1).requires_grad_()\n"
            "        for few, right in zip(rows.split(TOKENS), part[:, 1:].flatten().split(TOKENS), strict=True):\n"
            "            loss = nn.functional.cross_entropy(model.scores(few), right)\n"
            "            loss = loss * len(right) / batch[:, 1:].numel()\n"
            "            loss.backward()\n"
            "            total += loss.detach()\n"
            "        x.backward(rows.grad.view_as(x))\n"
            "    optimizer.step()\n"
            "    return total\n",
            "            x = block(x)\n"
            "        scores = model.scores(model.norm(x))\n"
            "        loss = nn.functional.cross_entropy(scores.flatten(0, 1), part[:, 1:].flatten())\n"
            "        total = total + loss * len(part) / len(batch)\n"
            "    total.backward()\n    optimizer.step()\n    return total.detach()\n",
        ),
    ),
    "parts-too-large": Way(
        "its peak is {share:.0%} of the plain step's, but may be at most {limit:.0%}. {calls} parts are not enough if each "
        "keeps everything that its blocks compute: take smaller parts, or let blocks be computed again",
        ("            x = checkpoint(block, x, use_reentrant=False)\n", "            x = block(x)\n"),
    ),
    "not-divided": Way(
        "its gradients are {factor:.2f} times those of the plain step. The loss of each part is a mean over that part: before "
        "backward it has to be multiplied by the part's share of the batch. (AdamW hides it; SGD does not.)",
        ("            loss = loss * len(right) / batch[:, 1:].numel()\n", ""),
    ),
    "too-small": Way(
        "its gradients are {factor:.2f} times those of the plain step: is the loss divided a second time, or are the gradients "
        "clipped or changed before the optimizer takes them?",
        (
            "            loss = loss * len(right) / batch[:, 1:].numel()\n",
            "            loss = loss * len(right) / batch[:, 1:].numel() / PARTS\n",
        ),
    ),
    "cleared-between": Way(
        "it clears the gradients {times} times per step, between its parts: the optimizer gets only those of the last part. "
        "Clear them once, before the first part or after the optimizer",
        ("        x = model.token(", "        optimizer.zero_grad()\n        x = model.token("),
    ),
    "mean-of-means": Way(
        "right if all parts are equally long, but wrong for {batch} sequences: the last part is shorter, and each of its "
        "tokens counts more than one of the others. A part counts by its share of the batch's tokens",
        ("/ batch[:, 1:].numel()\n", "/ part[:, 1:].numel() / len(batch.chunk(PARTS))\n"),
    ),
    "drops-sequences": Way(
        "{missing} of {batch} sequences never reached the model. A batch that does not divide evenly has a shorter last part, "
        "and its sequences count, too",
        ("batch.to(device).chunk(PARTS)", "batch[: len(batch) // PARTS * PARTS or None].split(max(1, len(batch) // PARTS))"),
        seen="{missing} of {batch} sequences never reached the model",
    ),
    "not-trained": Way(
        "{count} of {total} tensors of weights got no gradient; the first is {name}. What is computed under torch.no_grad, or "
        "detached, saves its memory because backward cannot go through it",
        (
            "        for block in model.blocks:\n            x = checkpoint(block, x, use_reentrant=False)\n",
            "        with torch.no_grad():\n            for block in model.blocks[:2]:\n                x = block(x)\n"
            "        for block in model.blocks[2:]:\n            x = checkpoint(block, x, use_reentrant=False)\n",
        ),
        seen="{count} of {total} tensors of weights got no gradient; the first is {name}. Is it used between the tokens and "
        "the loss?",
    ),
    "no-backward": Way(
        "no weight changed, and backward was never called: the optimizer had no gradients. Call loss.backward() for each part",
        (
            "            loss.backward()\n            total += loss.detach()\n        x.backward(rows.grad.view_as(x))\n",
            "            total += loss.detach()\n",
        ),
    ),
    "cleared-before-step": Way(
        "no weight changed, although backward was called: the gradients were gone before the optimizer stepped. Clear them "
        "before the first part or after the optimizer",
        ("    optimizer.step()\n", "    optimizer.zero_grad()\n    optimizer.step()\n"),
    ),
    "not-finite": Way(
        "after the first step some weights are NaN or infinite: what is the loss divided by?",
        (
            "            loss = loss * len(right) / batch[:, 1:].numel()\n",
            "            loss = loss / torch.zeros(())\n",
        ),
    ),
    "large-batch": Way(
        "right for small batches, but wrong for {batch} sequences, with which the memory is measured: its weights differ from "
        "the plain step's. Every sequence of the batch counts then, too",
        ("    optimizer.zero_grad()\n", "    optimizer.zero_grad()\n    batch = batch[:8]\n"),
    ),
    "many-steps": Way(
        "the optimizer stepped {steps} times for one batch, instead of once as in the plain step: first add up the gradients "
        "of all parts. {steps} steps on small batches give different results",
        (
            "        x.backward(rows.grad.view_as(x))\n    optimizer.step()\n",
            "        x.backward(rows.grad.view_as(x))\n        optimizer.step()\n",
        ),
    ),
    "gradients-kept": Way(
        "the first step is right, but the second is not: gradients of the first were still there, and backward adds to them. "
        "Clear them once per step, before the first part or after the optimizer",
        ("    optimizer.zero_grad()\n", ""),
    ),
    "sixteen-bits": Way(
        "its blocks compute in {dtype}: that changes the results, but they must stay the same. Weights, gradients and moments "
        "would stay in float32 in any case",
        (
            "        for block in model.blocks:\n            x = checkpoint(block, x, use_reentrant=False)\n",
            "        with torch.autocast(device.type, torch.bfloat16):\n            for block in model.blocks:\n"
            "                x = checkpoint(block, x, use_reentrant=False)\n",
        ),
    ),
    "too-much-work": Way(
        "it performs {times:.2f} times the operations of the plain step, but may perform at most {limit}. Computing each block "
        "again costs about a fifth; what else is computed twice?",
        (
            "        x.backward(rows.grad.view_as(x))\n",
            "        x.backward(rows.grad.view_as(x))\n        with torch.no_grad():\n            model(part[:, :-1])\n",
        ),
    ),
    "other-mode": Way(
        "after the step {count} modules of the model are in evaluation mode, and before it none was: the model is the "
        "caller's. Set it back, or leave its mode alone",
        ("    optimizer.step()\n", "    optimizer.step()\n    model.eval()\n"),
    ),
    "graph-returned": Way(
        "the loss that it returns still has its graph: a caller that keeps the losses of a training run keeps their graphs. "
        "Return loss.detach()",
        ("            total += loss.detach()\n", "            total = total + loss\n"),
    ),
    "scores-whole": Way(
        "right for {large} sequences. But with one sequence of {tokens:,} tokens and a vocabulary of {vocabulary:,} its peak "
        "is {share:.0%} of the plain step's, and may be at most {limit:.0%}: the scores of all {tokens:,} tokens exist at "
        "once. One sequence cannot be divided into micro-batches, but the loss of a token needs no other token's scores",
        ("zip(rows.split(TOKENS), part[:, 1:].flatten().split(TOKENS), strict=True)", "[(rows, part[:, 1:].flatten())]"),
    ),
    "scores-kept": Way(
        "right for {large} sequences. But with one sequence of {tokens:,} tokens and a vocabulary of {vocabulary:,} its peak "
        "is {share:.0%} of the plain step's, and may be at most {limit:.0%}. The scores are computed for at most {most:,} "
        "tokens at once, but the scores of all pieces wait for backward together",
        (
            "            loss.backward()\n            total += loss.detach()\n        x.backward(rows.grad.view_as(x))\n",
            "            total = total + loss\n        total.backward()\n        total = total.detach()\n"
            "        x.backward(rows.grad.view_as(x))\n",
        ),
    ),
}


@dataclass
class Record:
    """A record of some steps: the loss and the weights after each step, and observations made meanwhile."""

    losses: list[Any] = field(default_factory=list)
    weights: list[list[torch.Tensor]] = field(default_factory=list)
    rows: set[tuple[int, ...]] = field(default_factory=set)
    dtypes: set[torch.dtype] = field(default_factory=set)
    other_mode: int = 0
    steps: int = 0
    backwards: int = 0
    clears: int = 0


def judge(part: Part) -> None:
    """Judge the results for three batch sizes, then memory and operations."""
    from techniques import Shape

    torch.set_num_threads(1)
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict("open", sentence="as delivered: right, but too large for the device of the exercise")
    step = part.function("step")
    record = [_judge_training(part, step, Shape(LAYERS, WIDTH, LENGTH, batch, VOCABULARY)) for batch in BATCHES]
    _judge_training(part, step, Shape(LAYERS, WIDTH, LENGTH, BATCHES[0], VOCABULARY), STEEP)
    part.note(f"losses and weights equal those of the plain step for {', '.join(map(str, BATCHES))} sequences, with SGD")
    _judge_memory(part, step, Shape(LAYERS, WIDTH, LENGTH, LARGE, VOCABULARY), record[0].backwards // STEPS)


def _train(step: Any, shape: Any, call: Any, steep: float) -> Record:
    record = Record()
    model = _make_model(shape, steep)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE / (1 if steep == 1 else 10 * steep))

    def see_tokens(_module: Any, inputs: Any, _out: Any) -> None:
        record.rows.update(tuple(row) for row in inputs[0].reshape(-1, shape.length).tolist())

    def see_type(_module: Any, _inputs: Any, output: torch.Tensor) -> None:
        record.dtypes.add(output.dtype)

    def see_step(*_: Any) -> None:
        record.steps += 1

    clear = optimizer.zero_grad

    def see_clear(*inputs: Any, **named: Any) -> None:
        record.clears += 1
        clear(*inputs, **named)

    def see_gradient(_parameter: Any) -> None:
        record.backwards += 1

    model.token.register_forward_hook(see_tokens)
    model.blocks[-1].mlp.up.register_forward_hook(see_type)
    model.scores.bias.register_post_accumulate_grad_hook(see_gradient)
    optimizer.register_step_post_hook(see_step)
    optimizer.zero_grad = see_clear  # type: ignore[method-assign]
    for number in range(STEPS):
        record.losses.append(call(step, model, shape.make_batch(number), optimizer, CPU))
        record.weights.append([parameter.detach().clone() for parameter in model.parameters()])
    record.weights.append([parameter.detach() for parameter in _make_model(shape, steep).parameters()])  # before the first step
    record.other_mode = sum(not module.training for module in model.modules())
    return record


def _make_model(shape: Any, steep: float) -> Any:
    model = shape.make_model(CPU)
    with torch.no_grad():
        model.scores.weight.mul_(steep)
    return model


def _judge_training(part: Part, step: Any, shape: Any, steep: float = 1.0) -> Record:
    from techniques import PLAIN, train

    case = f"a batch of {shape.batch} sequences" if shape.batch > 1 else "a batch of one sequence"
    case += f", weights of the last layer times {steep:g}" * (steep != 1)
    right = _train(lambda *inputs: train(PLAIN, *inputs), shape, lambda function, *inputs: function(*inputs), steep)
    answer = _train(step, shape, lambda *arguments: part.call(*arguments, case=case), steep)
    _judge_ways(part, shape, right, answer, case)
    if not all(_largest_gap(answer.weights[number], right.weights[number]) <= TOLERANCE for number in range(STEPS)):
        _name_gradients(part, shape, right, answer, case)
    for number, (loss, right_loss) in enumerate(zip(answer.losses, right.losses, strict=True)):
        if not isinstance(loss, (int, float)) and not (torch.is_tensor(loss) and loss.numel() == 1):
            raise Verdict("failed", "no-loss", f"it returned {type(loss).__name__}: return the mean loss of the batch", case)
        if torch.is_tensor(loss) and loss.requires_grad:
            raise part.wrong("graph-returned", case)
        if not abs(float(loss) - float(right_loss)) <= 1e-4 * steep:  # NaN as well
            says = f"its weights are right, but its loss in step {number} is {float(loss):.5f}, not {float(right_loss):.5f}"
            raise Verdict("failed", "other-loss", f"{says}: return the mean over all tokens of the batch", case)
    if answer.other_mode:
        raise part.wrong("other-mode", case, count=answer.other_mode)
    return answer


def _judge_ways(part: Part, shape: Any, right: Record, answer: Record, case: str) -> None:
    """Raise the verdict if a sequence was left out, if the optimizer stepped never or more than once in a step, or if a loss or
    weight is not in float32."""
    missing = right.rows - answer.rows
    if answer.rows and missing:
        values = {"missing": len(missing) // STEPS or 1, "batch": shape.batch}
        raise part.wrong("drops-sequences", case, output=sorted(map(list, missing)), **values)
    if answer.steps == 0:
        raise Verdict("failed", "no-step", "the optimizer never stepped: optimizer.step() belongs to the step", case)
    if answer.steps != STEPS:
        raise part.wrong("many-steps", case, steps=answer.steps // STEPS)
    if other_types := answer.dtypes - {torch.float32}:
        raise part.wrong("sixteen-bits", case, dtype=str(other_types.pop()).removeprefix("torch."))


def _largest_gap(answer: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    """Return the largest difference between two numbers, or NaN if one of them is NaN."""
    return (
        torch.stack([(value - right_value).abs().max() for value, right_value in zip(answer, right, strict=True)]).max().item()
    )


def _name_gradients(part: Part, shape: Any, right: Record, answer: Record, case: str) -> None:
    """Raise the verdict that explains wrong weights: compare the change of each weight in the first step with the right
    change."""
    first = right.weights[-1]
    moved = [weight - initial for weight, initial in zip(answer.weights[0], first, strict=True)]
    right_moves = [weight - initial for weight, initial in zip(right.weights[0], first, strict=True)]
    names = [name for name, _ in shape.make_model(CPU).named_parameters()]
    unmoved = [name for name, did, should in zip(names, moved, right_moves, strict=True) if should.any() and not did.any()]
    if not any(did.any() for did in moved):
        raise part.wrong("cleared-before-step" if answer.backwards else "no-backward", case)
    if not all(did.isfinite().all() for did in moved):
        raise part.wrong("not-finite", case)
    if unmoved:
        raise part.wrong("not-trained", case, output=unmoved, count=len(unmoved), total=len(names), name=unmoved[0])
    if _largest_gap(answer.weights[0], right.weights[0]) <= TOLERANCE:
        raise part.wrong("gradients-kept", case)
    did, should = torch.cat([item.flatten() for item in moved]), torch.cat([item.flatten() for item in right_moves])
    factor = (did @ should / (should @ should)).item()
    if (did - factor * should).norm() <= 1e-3 * did.norm():
        raise part.wrong("not-divided" if factor > 1 else "too-small", case, factor=factor)
    if answer.clears > STEPS and answer.backwards > STEPS:
        raise part.wrong("cleared-between", case, times=answer.clears // STEPS)
    if shape.batch != BATCHES[0]:
        raise part.wrong("mean-of-means", case, batch=shape.batch)
    says = "the weights after the first step differ from the plain step's: is it the gradient of the mean loss of all tokens?"
    raise Verdict("failed", "other-weights", says, case)


def _judge_memory(part: Part, step: Any, shape: Any, backwards: int) -> None:
    from device_memory import SimulatedMemory
    from techniques import PLAIN, measure, train

    def yours(model: Any, batch: Any, optimizer: Any, device: Any, _enter: Any) -> Any:
        return part.call(step, model, batch, optimizer, device, case=f"{len(batch)} sequences, memory counted")

    def plain(*yours_measured: Any) -> Any:
        return train(PLAIN, *yours_measured)

    right, yours_measured = (measure(way, shape, STEPS, SimulatedMemory(1 << 40), CPU) for way in (plain, yours))
    if not _largest_gap(yours_measured.weights, right.weights) <= MAX_DIFFERENCE:
        raise part.wrong("large-batch", f"{shape.batch} sequences", batch=shape.batch)
    share, times = yours_measured.peak / right.peak, yours_measured.flops / right.flops
    if share > MAX_MEMORY:
        way = "all-at-once" if yours_measured.calls <= 1 else "one-backward" if backwards == 1 else "parts-too-large"
        raise part.wrong(way, f"{shape.batch} sequences", share=share, limit=MAX_MEMORY, calls=yours_measured.calls)
    if times > MAX_WORK:
        raise part.wrong("too-much-work", f"{shape.batch} sequences", times=times, limit=MAX_WORK)
    part.note(f"{shape.batch} sequences: {share:.0%} of the plain step's peak, with {times:.2f} times its operations")
    _judge_long(part, plain, yours)


def _judge_long(part: Part, plain: Any, yours: Any) -> None:
    """Judge the memory of one long sequence with a large vocabulary."""
    from device_memory import SimulatedMemory
    from techniques import LONG, measure

    case, most = f"one sequence, a vocabulary of {LONG.vocabulary:,}", 0

    def watched(model: Any, *others: Any) -> Any:
        def see_scores(_module: Any, _inputs: Any, output: torch.Tensor) -> None:
            nonlocal most
            most = max(most, output.numel() // LONG.vocabulary)

        hook = model.scores.register_forward_hook(see_scores)
        loss = yours(model, *others)
        hook.remove()
        return loss

    right, yours_measured = (measure(way, LONG, STEPS, SimulatedMemory(1 << 40), CPU) for way in (plain, watched))
    if not _largest_gap(yours_measured.weights, right.weights) <= MAX_DIFFERENCE:
        says = "right for smaller ones, but here its weights differ from the plain step's: do all tokens count once?"
        raise Verdict("failed", "other-weights", says, case)
    share = yours_measured.peak / right.peak
    if share > MAX_LONG:
        values = {"large": LARGE, "tokens": LONG.length, "vocabulary": LONG.vocabulary, "limit": MAX_LONG, "most": most}
        raise part.wrong("scores-whole" if most >= LONG.length else "scores-kept", case, share=share, **values)
    if yours_measured.flops > MAX_WORK * right.flops:
        raise part.wrong("too-much-work", case, times=yours_measured.flops / right.flops, limit=MAX_WORK)
    part.note(
        f"one sequence of {LONG.length:,} tokens, {LONG.vocabulary:,} scores for each: {share:.0%} of the plain step's peak"
    )
