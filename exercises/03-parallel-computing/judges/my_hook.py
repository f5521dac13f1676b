"""Judge my_hook.py of 3.8 on real ranks: the mean, the bytes, and the error after many small steps."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Part, Verdict, Way

STEPS, CHANGING, LARGEST = 100, 300, 60_000.0
ROUNDING = 2.0**-10  # twice the largest error of a number below 2 that is halved, sent as float16 and doubled
WAYS = {
    "sum": Way(
        "your hook returns the sum over {ranks} ranks: DDP uses its result as the gradient, so it must be the mean",
        ("(target / ranks).half()", "target.half()"),
    ),
    "nothing-sent": Way(
        "nothing went to a collective: rank {rank} returns its own gradient, and the other ranks never get it",
        (
            "future = dist.all_reduce(rounded, async_op=True).get_future()\n"
            "    return future.then(lambda result: result.value()[0].float())",
            "future = torch.futures.Future()\n    future.set_result(rounded.float() * ranks)\n    return future",
        ),
    ),
    "overflow": Way(
        "{ranks} ranks had gradients of about {largest:,.0f}, and the mean came back as {given}: their sum is above "
        "65,504, the largest float16. Divide before you send, not afterwards",
        (
            "rounded = (target / ranks).half()\n    errors[bucket.index()] = target - rounded.float() * ranks\n"
            "    future = dist.all_reduce(rounded, async_op=True).get_future()\n"
            "    return future.then(lambda result: result.value()[0].float())",
            "rounded = target.half()\n    errors[bucket.index()] = target - rounded.float()\n"
            "    future = dist.all_reduce(rounded, async_op=True).get_future()\n"
            "    return future.then(lambda result: result.value()[0].float() / ranks)",
        ),
    ),
    "whole": Way(
        "{bytes:,} bytes were sent for {count:,} numbers, {more:,} more than float16 needs. Send the float16 tensor, not the "
        "tensor from which you made it",
        ("(target / ranks).half()", "(target / ranks)"),
    ),
    "bfloat16": Way(
        "you sent torch.bfloat16: it also needs 2 bytes and has a larger range, but it keeps 8 bits of each number, and "
        "float16 keeps 11. Use torch.float16",
        ("(target / ranks).half()", "(target / ranks).bfloat16()"),
    ),
    "no-feedback": Way(
        "over {steps} steps of the same gradient the means lost {lost:.2%} of it: the rounding error is lost in every "
        "step. Keep it, and add it to the next gradient of the same bucket",
        ("bucket.buffer() + errors.get(bucket.index(), 0.0)", "bucket.buffer() + 0.0"),
        seen="over {steps} steps of the same gradient the means are {lost:.2%} off",
    ),
    "wrong-sign": Way(
        "you keep an error, but over {steps} steps of one gradient the means are still {lost:.2%} off. Keep the values to "
        "send minus the values sent, not the reverse, in the scale in which you add them",
        ("target - rounded.float() * ranks", "rounded.float() * ranks - target"),
        seen="over {steps} steps of the same gradient the means are {lost:.2%} off",
    ),
    "one-for-all": Way(
        "one bucket alone is right, but with two buckets each is {lost:.2%} off: the error of one was added to the other. Keep "
        "one tensor for each bucket.index()",
        (
            "bucket.buffer() + errors.get(bucket.index(), 0.0)\n    rounded = (target / ranks).half()\n"
            "    errors[bucket.index()] =",
            "bucket.buffer() + errors.get(0, 0.0)\n    rounded = (target / ranks).half()\n    errors[0] =",
        ),
        seen="over {steps} steps of the same gradient the means are {lost:.2%} off",
    ),
    "error-of-the-mean": Way(
        "you kept the difference from the mean of all ranks. Most of that is the other ranks' share, and it grows. A rank "
        "must keep the rounding error of its own numbers",
        ("target - rounded.float() * ranks", "target - rounded.float()"),
        seen="over {steps} steps of the same gradient the means are {lost:.2%} off",
    ),
    "half-returned": Way(
        "your hook returns {given}: the bucket is float32, and DDP puts the result in its place",
        ("result.value()[0].float()", "result.value()[0]"),
    ),
    "no-future": Way(
        "your hook returns {given}: DDP waits for a future of a tensor, .get_future() of an all_reduce with async_op=True",
        ("return future.then(lambda result: result.value()[0].float())", "return future.wait()[0].float()"),
    ),
    "future-of-a-list": Way(
        "your future contains {given}: DDP needs a tensor. The future of an all_reduce contains a list with one tensor: take "
        "it out of the list in then()",
        ("return future.then(lambda result: result.value()[0].float())", "return future"),
    ),
}  # fmt: skip


class Bucket:
    """The methods of DDP's buckets that a hook uses."""

    def __init__(self, number: int, gradient: Any) -> None:
        self._number, self._gradient = number, gradient

    def index(self) -> int:
        """Return the number of the bucket."""
        return self._number

    def buffer(self) -> Any:
        """Return the gradients as a flat tensor."""
        return self._gradient

    def set_buffer(self, tensor: Any) -> None:
        """Replace the gradients."""
        self._gradient = tensor

    def is_last(self) -> bool:
        """Return whether it is the last bucket of this step."""
        return self._number == 1


def judge(part: Part) -> None:
    """Judge one step with several numbers of ranks, large gradients, and many steps with two buckets."""
    from collectives import count_collectives

    counts = count_collectives()
    hook = part.function("half_hook")
    for size in (2, 3, 1):
        for rank, step in enumerate(part.on_ranks(size, lambda rank, size: _one_step(part, hook, counts, rank, size))):
            if size > 1 and not step["bytes"] and step["usual off"] > 0.001:
                raise part.wrong("nothing-sent", f"rank {rank} of {size}", rank=rank)
            _check_step(part, f"rank {rank} of {size}", size, step)
    together, echo = part.on_ranks(2, lambda rank, _: _many_steps(part, hook, rank, (0, 1)))[0]
    alone, _ = part.on_ranks(2, lambda rank, _: _many_steps(part, hook, rank, (0,)))[0]
    _check_feedback(part, together, alone, echo)
    _check_drift(part, max(part.on_ranks(2, lambda rank, _: _changing_steps(part, hook, rank))))
    worst, plain = (max(map(abs, errors)) for errors in (together, [_plain_error(0), _plain_error(1)]))
    part.note(f"2 bytes per number; after {STEPS} steps {worst:.4%} off, and {plain:.4%} without feedback")


def _result(part: Part, future: Any) -> Any:
    """Return the tensor in the future that a hook returned."""
    import torch

    if future is None:
        raise Verdict("failed", "no-answer", "it returned None: is the return missing?")
    if isinstance(future, torch.Tensor) or not callable(getattr(future, "wait", None)):
        raise part.wrong("no-future", given=f"a {type(future).__name__}")
    tensor = part.call(future.wait)
    if not isinstance(tensor, torch.Tensor):
        raise part.wrong("future-of-a-list", given=f"a {type(tensor).__name__}")
    if tensor.dtype != torch.float32:
        raise part.wrong("half-returned", given=str(tensor.dtype))
    return tensor


def _one_step(part: Part, hook: Any, counts: Any, rank: int, size: int) -> dict[str, float]:
    """Return the bytes of one step and the error of its mean, for usual and for large gradients."""
    import torch

    result = {"count": 1001.0}
    for name, largest in (("usual", 1.0), ("large", LARGEST)):
        gradients = [largest * (0.8 + 0.2 * torch.rand(1001, generator=torch.Generator().manual_seed(r))) for r in range(size)]
        counts.clear()
        answer = _result(part, part.call(hook, {}, Bucket(0, gradients[rank].clone())))
        mean = torch.stack(gradients).mean(0)
        if answer.shape != mean.shape:
            raise Verdict("failed", "shape", f"the bucket has shape {tuple(mean.shape)}, but the result {tuple(answer.shape)}")
        result |= {
            f"{name} times": (answer / mean).mean().item(),
            f"{name} off": ((answer - mean).abs().max() / largest).item(),
        }
    is_whole = len(counts.calls) == 1 and counts.types == {"torch.float32"} and counts.bytes == 4 * result["count"]
    is_bfloat16 = "torch.bfloat16" in counts.types
    return result | {"bytes": counts.bytes, "whole": float(is_whole), "bfloat16": float(is_bfloat16)}


def _check_step(part: Part, case: str, size: int, step: dict[str, float]) -> None:
    sent, count = int(step["bytes"]), int(step["count"])
    more = sent - 2 * count
    if step["whole"]:
        raise part.wrong("whole", case, bytes=sent, count=count, more=more)
    if more > 0:
        says = f"{sent:,} bytes were sent for {count:,} numbers, {more:,} more than float16 needs: it needs 2 for each number"
        raise Verdict("failed", "other", says, case)
    if step["bfloat16"]:
        raise part.wrong("bfloat16", case)
    if size > 1 and abs(step["usual times"] / size - 1) < 0.01:
        raise part.wrong("sum", case, ranks=size)
    if not step["usual off"] < 0.01:
        says = f"the result is {step['usual times']:.3g} times the mean of the ranks' gradients"
        raise Verdict("failed", "not-the-mean", says, case)
    if not step["large off"] < 0.01:
        raise part.wrong("overflow", case, ranks=size, largest=LARGEST, given=f"{step['large times']:.3g} times its value")


def _gradients(number: int) -> list[float]:
    """Return the value of each element of a bucket on ranks 0 and 1, in every step: float16 rounds it down in bucket 0 and up
    in bucket 1.

    Rank 1 contributes zeros, so that the sum over the ranks adds no further rounding.
    """
    step = 2.0**-10  # of float16 between 1 and 2
    return [1 + 0.49 * step if number == 0 else 1.5 - 0.49 * step, 0.0]


def _many_steps(part: Part, hook: Any, rank: int, buckets: tuple[int, ...]) -> tuple[list[float], float]:
    """Return the relative error of the mean over many steps for each of these buckets. Also return the result of a step with a
    gradient of 0 after another step: the value that the hook kept."""
    import torch

    state: dict[int, Any] = {}
    part.call(hook, state, Bucket(0, torch.full((7,), _gradients(0)[rank])))
    echo = _result(part, part.call(hook, state, Bucket(0, torch.zeros(7)))).mean().item()
    state = {}
    totals = {number: torch.zeros(7, dtype=torch.float64) for number in buckets}
    for _ in range(STEPS):
        for number in buckets:
            gradient = torch.full((7,), _gradients(number)[rank])
            totals[number] += _result(part, part.call(hook, state, Bucket(number, gradient)))
    means = {number: (total / STEPS).mean().item() for number, total in totals.items()}
    return [mean / (sum(_gradients(number)) / 2) - 1 for number, mean in means.items()], echo


def _plain_error(number: int) -> float:
    """Return the error of the mean without error feedback, as a share of the mean."""
    import torch

    total = sum(torch.tensor(gradient / 2).half().item() for gradient in _gradients(number))
    return total / (sum(_gradients(number)) / 2) - 1


def _check_feedback(part: Part, together: list[float], alone: list[float], echo: float) -> None:
    plain = [_plain_error(0), _plain_error(1)]
    output = [1e4 * error for error in (*together, *alone, echo)]
    worst, case = max(map(abs, together)), f"{STEPS} steps of the same gradients, 2 ranks, 2 buckets"
    if all(abs(error) < 0.1 * abs(loss) for error, loss in zip(together, plain, strict=True)):
        return
    if abs(alone[0]) < 0.1 * abs(plain[0]):
        raise part.wrong("one-for-all", case, output=output, steps=STEPS, lost=worst)
    way = "error-of-the-mean" if worst > 0.05 else "wrong-sign" if echo < 0 else "no-feedback"
    raise part.wrong(way, case, output=output, steps=STEPS, lost=worst)


def _changing_steps(part: Part, hook: Any, rank: int) -> float:
    """Return the largest difference between the sum of the hook's results, times the number of ranks, and the sum of the
    gradients. The gradients differ in each step, from 0.5 to 1.5.

    Rank 1 contributes zeros, so that the sum over the ranks adds no further rounding.
    """
    import torch

    state: dict[int, Any] = {}
    generator = torch.Generator().manual_seed(0)
    drift, worst = torch.zeros(7, dtype=torch.float64), 0.0
    for _ in range(CHANGING):
        gradient = 0.5 + torch.rand(7, generator=generator)
        drift += 2 * _result(part, part.call(hook, state, Bucket(0, gradient * (rank == 0)))).double() - gradient
        worst = max(worst, drift.abs().max().item())
    return worst


def _check_drift(part: Part, drift: float) -> None:
    """Check that the sum of the sent values differs from the sum of the gradients by no more than the rounding of the last
    step. Raises Verdict."""
    if drift > ROUNDING:
        says = (
            f"over {CHANGING} steps, the sum of the values sent is up to {drift:.3g} off. With error feedback, only the "
            f"rounding of the last gradient is missing, {ROUNDING / 2:.3g}. Some errors are lost, or are added twice"
        )
        raise Verdict("failed", "other", says, f"{CHANGING} steps, each with different gradients, 2 ranks")
