"""Judge my_loop.py of 5.2: first on the meta device, which has no data, then on the CPU in three number formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from gpucourse.judge import Part, Verdict, Way

HIDDEN, BATCH, STEPS, RATE = 64, 32, 10, 1e-3
TOLERANCE, MAX_GAP, HALF, SCALED, UNCLIPPED, MAX_READS = 1e-4, 0.02, 90.0, 8.0, 1.25, 0.1
WEIGHTS_OFF = 2e-5  # relative; a different order of sums changes weights by 5e-7, a different weight_decay by 1e-4
CPU = torch.device("cpu")
WAYS = {
    "nothing-moved": Way(
        "it should train on {device}, but the model computed on the CPU: move the model before the loop, and the data, too",
        ("    model.to(device)\n", '    device = torch.device("cpu")\n    model.to(device)\n'),
    ),
    "left-behind": Way(
        "line {line}: two tensors meet on different devices ({error}). Model, inputs and labels all have to be on the device",
        ("y = all_y[rows].to(device, non_blocking=True)", "y = all_y[rows]"),
    ),
    "looks-at-values": Way(
        "line {line} reads a value of a tensor. On a GPU the processor waits there until everything that is queued is done, "
        "and then the GPU waits for the next step. Keep loss.detach(), and return a tensor: the caller of train reads it",
        ("losses.append(loss.detach())", "losses.append(torch.tensor(loss.item()))"),
    ),
    "branches-on-a-value": Way(
        "line {line} branches on the value of a tensor, which has to be read first: if and while wait for the GPU as item() "
        "does. torch.minimum and torch.where decide on the device",
        ("losses.append(loss.detach())", "losses.append(loss.detach() if not losses or loss < losses[-1] else losses[-1])"),
    ),
    "lists-in-loop": Way(
        "tensors are built from Python lists in each step ({count:.0f} of them), number by number, while the GPU waits. Build "
        "them once before the loop, and take slices",
        ("x = all_x[rows].to(", "x = torch.tensor(inputs[rows]).to("),
    ),
    "blocking-copies": Way(
        "{count} of {all} copies to the device in the loop block: the processor waits for each. With pinned memory and "
        "non_blocking=True it continues, and the GPU keeps the order",
        ("x = all_x[rows].to(device, non_blocking=True)", "x = all_x[rows].to(device)"),
    ),
    "keeps-graph": Way(
        "the losses that it returns still belong to a graph, and keep part of every step in memory: use loss.detach()",
        ("losses.append(loss.detach())", "losses.append(loss)"),
    ),
    "gradients-kept": Way(
        "the gradients of earlier steps are added up, as in a loop without zero_grad",
        ("        optimizer.zero_grad()\n", ""),
    ),
    "float32-only": Way(
        "with dtype {dtype}, {percent:.0f}% of the work of matrix products is in 16 bits: put forward and loss under autocast",
        ("enabled=dtype != torch.float32)", "enabled=False)"),
    ),
    "other-format": Way(
        "with dtype {dtype}, {percent:.0f}% of the work of matrix products is in {given}: pass dtype on to autocast",
        ("dtype=dtype, enabled", "dtype=torch.bfloat16, enabled"),
    ),
    "half-model": Way(
        "the parameters themselves are in 16 bits after training: small updates round to nothing. autocast casts copies for "
        "each product; the parameters stay in float32",
        ("    model.to(device)\n", "    model.to(device, dtype)\n"),
    ),
    "backward-in-autocast": Way(
        "backward runs under autocast, although it uses the formats of forward automatically. End the with before backward",
        (
            "        optimizer.zero_grad()\n        scaler.scale(loss).backward()\n",
            "            optimizer.zero_grad()\n            scaler.scale(loss).backward()\n",
        ),
    ),
    "no-scaler": Way(
        "float16 without a scaler: the gradients of backward are as small as in float32, but below 6e-8 float16 has only 0. "
        "Scale the loss before backward",
        ("enabled=dtype == torch.float16)", "enabled=False)"),
    ),
    "new-scalers": Way(
        "{count} scalers scaled the losses of {steps} steps: each begins with the same scale, so that an overflow never "
        "lowers it, and every later step would be skipped, too. Create one scaler before the loop",
        (
            "        first = step * batch_size",
            "        scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)\n"
            "        first = step * batch_size",
        ),
    ),
    "not-unscaled": Way(
        "the optimizer took gradients that are {times:,.0f} times too large: they were scaled, but never divided again. "
        "scaler.step(optimizer) divides, and skips the step if one is infinite",
        (
            "        scaler.unscale_(optimizer)\n        nn.utils.clip_grad_norm_(model.parameters(), CLIP)\n"
            "        scaler.step(optimizer)\n        scaler.update()\n",
            "        nn.utils.clip_grad_norm_(model.parameters(), CLIP * scaler.get_scale())\n        optimizer.step()\n",
        ),
    ),
    "no-scaler-step": Way(
        "a scaler multiplied the losses, but scaler.step was never called: no step with an infinite gradient would be skipped",
        (
            "        scaler.unscale_(optimizer)\n        nn.utils.clip_grad_norm_(model.parameters(), CLIP)\n"
            "        scaler.step(optimizer)\n        scaler.update()\n",
            "        nn.utils.clip_grad_norm_(model.parameters(), CLIP)\n        optimizer.step()\n",
        ),
    ),
    "not-clipped": Way(
        "the gradients are not clipped: the optimizer took the same ones as in a loop without clip_grad_norm_",
        ("        nn.utils.clip_grad_norm_(model.parameters(), CLIP)\n", ""),
    ),
    "clipped-in-float32-only": Way(
        "the optimizer took gradients that are {times:.1f} times those of float32, where they are clipped: clip them in this "
        "format, too",
        (
            "        scaler.unscale_(optimizer)\n        nn.utils.clip_grad_norm_(model.parameters(), CLIP)\n",
            "        scaler.unscale_(optimizer)\n        if dtype == torch.float32:\n"
            "            nn.utils.clip_grad_norm_(model.parameters(), CLIP)\n",
        ),
    ),
    "divided-twice": Way(
        "the optimizer took gradients that are {times:,.0f} times too small: they were divided twice, or clipped while they "
        "were still scaled, when their norm is tens of thousands. Which numbers does your clipping see?",
        ("        scaler.unscale_(optimizer)\n", ""),
    ),
    "no-update": Way(
        "line {line}: after scaler.step, scaler.update() has to come before the scaler is used again: it chooses the scale "
        "of the next step",
        ("        scaler.update()\n", ""),
    ),
}


def judge(part: Part) -> None:
    """Judge the device that it computes on and the values that it reads, then the numbers, then the formats."""
    import loops

    torch.set_num_threads(1)
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict("open", sentence="as delivered: it trains on the CPU, whatever device says")
    train = part.function("train")
    _judge_on_meta(part, loops, train)
    model = loops.make_model(HIDDEN)
    right = loops.train_on_cpu(model, *loops.make_data(BATCH), BATCH, steps=STEPS)
    plain = _watch(part, loops, train, torch.float32)
    _judge_losses(part, loops, plain, right)
    _judge_weights(plain.weights, loops.join_weights(model), loops.join_weights(loops.make_model(HIDDEN)))
    for dtype in (torch.bfloat16, torch.float16):
        _judge_mixed(part, _watch(part, loops, train, dtype), plain, dtype)
    part.note(f"on the meta device it reads no value; losses and weights of {STEPS} steps in float32 equal to the CPU loop's")
    part.note(
        "in bfloat16 and float16 the products are in that format, the parameters in float32, gradients clipped as in float32"
    )


def _judge_on_meta(part: Part, loops: Any, train: Any) -> None:
    run = loops.run_on_meta(train)
    ways = {"stayed": "nothing-moved", "left": "left-behind", "looked": "looks-at-values", "branched": "branches-on-a-value"}
    if run.kind == "no-step":
        says = f"{run.says}: backward computes gradients, but nothing uses them. scaler.step(optimizer) makes the step"
        raise Verdict("failed", run.kind, says, "on the meta device")
    if run.kind in ways:
        case = f"{loops.META_STEPS} steps on the meta device"
        raise part.wrong(ways[run.kind], case, line=run.line, error=run.says.partition(": ")[2], device="meta")
    if run.error is not None:
        raise _explain(part, run.error, "on the meta device")
    if run.built_from_python >= 1:
        raise part.wrong("lists-in-loop", count=run.built_from_python)
    if blocking := [move for move in run.moves if not move.non_blocking]:
        raise part.wrong("blocking-copies", count=len(blocking), all=len(run.moves))


def _watch(part: Part, loops: Any, train: Any, dtype: torch.dtype) -> Any:
    try:
        return loops.watch(train, CPU, dtype, width=HIDDEN, batch_size=BATCH, steps=STEPS)
    except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way
        raise _explain(part, error, f"on the CPU, dtype {_name(dtype)}") from None


def _explain(part: Part, error: Exception, case: str) -> Verdict:
    if str(error).startswith("step() has already been called") or "is being called after step()" in str(error):
        line = part.make_verdict(error).says.split(":")[1]
        return part.wrong("no-update", case, line=line)
    if "fused=True" in str(error):
        line = part.make_verdict(error).says.split(":")[1]
        says = f"line {line}: fused=True needs a real device. fused=device.type == 'cuda' is right everywhere"
        return Verdict("failed", "fused-anywhere", says, case)
    return part.make_verdict(error, case)


def _judge_losses(part: Part, loops: Any, plain: Any, right: torch.Tensor) -> None:
    if plain.losses.shape != right.shape:
        raise Verdict("failed", "other", f"it returned {len(plain.losses)} losses for {len(right)} steps", "on the CPU")
    if plain.operations.values_read > MAX_READS * STEPS:
        line = max(plain.operations.lines_read, key=plain.operations.lines_read.__getitem__)
        raise part.wrong("looks-at-values", "on the CPU in float32", line=line)
    if not torch.allclose(plain.losses, right, rtol=0, atol=TOLERANCE):
        if torch.allclose(plain.losses, _train_without_zeroing(loops), rtol=0, atol=TOLERANCE):
            raise part.wrong("gradients-kept", "on the CPU in float32")
        unclipped = loops.train_on_cpu(loops.make_model(HIDDEN), *loops.make_data(BATCH), BATCH, steps=STEPS, clip=float("inf"))
        if torch.allclose(plain.losses, unclipped, rtol=0, atol=TOLERANCE):
            raise part.wrong("not-clipped", "on the CPU in float32")
        place = int((~((plain.losses - right).abs() <= TOLERANCE)).nonzero()[0])  # a NaN is no loss either
        says = f"the loss of step {place} is {plain.losses[place]:.6f}, but that of the CPU loop is {right[place]:.6f}"
        raise Verdict("failed", "other-losses", f"{says}: the same batches, the same optimizer?", "float32")
    if plain.keeps_graph:
        raise part.wrong("keeps-graph")


def _judge_weights(weights: torch.Tensor, right: torch.Tensor, initial: torch.Tensor) -> None:
    if torch.equal(weights, initial):
        says = "its losses equal the CPU loop's, but the model that was passed still has its initial weights"
        raise Verdict("failed", "other", says, "float32")
    off = float((weights - right).norm() / right.norm())
    if not off <= WEIGHTS_OFF:
        says = f"its losses equal the CPU loop's, but its weights are off by {off:.0e} of their size after {STEPS} steps"
        raise Verdict("failed", "other-weights", f"{says}: is its optimizer the one of the provided loop?", "float32")


def _train_without_zeroing(loops: Any) -> torch.Tensor:
    plain = torch.optim.AdamW.zero_grad
    torch.optim.AdamW.zero_grad = lambda *_, **__: None
    try:
        return loops.train_on_cpu(loops.make_model(HIDDEN), *loops.make_data(BATCH), BATCH, steps=STEPS)
    finally:
        torch.optim.AdamW.zero_grad = plain


def _judge_mixed(part: Part, mixed: Any, plain: Any, dtype: torch.dtype) -> None:
    case = f"dtype {_name(dtype)}"
    if not mixed.parameters_float32:
        raise part.wrong("half-model", case)
    if mixed.half_percent < HALF:
        raise part.wrong("float32-only", case, dtype=_name(dtype), percent=mixed.half_percent)
    common_dtype, flop = mixed.operations.flop_of_type.most_common(1)[0]
    if common_dtype != dtype:
        raise part.wrong(
            "other-format", case, dtype=_name(dtype), given=_name(common_dtype), percent=100 * flop / mixed.operations.flop
        )
    if mixed.autocast_in_backward:
        raise part.wrong("backward-in-autocast", case)
    if dtype == torch.float16 and mixed.gradient < SCALED * plain.gradient:
        raise part.wrong("no-scaler", case)
    if mixed.scalers > 1:
        raise part.wrong("new-scalers", case, count=mixed.scalers, steps=STEPS)
    _judge_gradients(part, mixed.gradient_at_step / max(plain.gradient_at_step, 1e-30), case)
    if mixed.scalers and not mixed.scaler_steps:
        raise part.wrong("no-scaler-step", case)
    gap = abs(mixed.losses[-1] - plain.losses[-1]) / plain.losses[-1]
    if not gap <= MAX_GAP:
        says = f"the last loss in {_name(dtype)} is {mixed.losses[-1]:.4f}, but in float32 {plain.losses[-1]:.4f}"
        raise Verdict("failed", "mixed-learns-less", f"{says}: mixed precision should cost hardly any accuracy", case)


def _judge_gradients(part: Part, times: float, case: str) -> None:
    """Raise the verdict if the optimizer used wrong gradients: `times` as large as those in float32."""
    if times > SCALED:
        raise part.wrong("not-unscaled", case, times=times)
    if times > UNCLIPPED:
        raise part.wrong("clipped-in-float32-only", case, times=times)
    if SCALED * times < 1:
        raise part.wrong("divided-twice", case, times=1 / max(times, 1e-30))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
