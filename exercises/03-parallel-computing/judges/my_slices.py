"""Judge my_slices.py of 3.9 on real ranks: two split layers, with an activation between them, must equal whole layers."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way

BATCH, WIDTH = 5, 12
WAYS = {
    "wrong-dimension": Way(
        "rank {rank} of {size} holds a slice of {given} for {how} instead of {right}: torch stores a weight as (outputs, "
        "inputs), so columns are slices of dimension 0, and rows of dimension 1",
        (
            'weight.chunk(size, dim=0)[rank], bias.chunk(size)[rank]\n    return weight.chunk(size, dim=1)[rank], bias',
            'weight.chunk(size, dim=1)[rank], bias.chunk(size)[rank]\n    return weight.chunk(size, dim=0)[rank], bias',
        ),
    ),
    "same-slice": Way(
        "rank {rank} of {size} holds the slice of another rank ({how}): slice number r belongs to rank r",
        ("return weight.chunk(size, dim=1)[rank], bias", "return weight.chunk(size, dim=1)[0], bias"),
    ),
    "whole-bias": Way(
        "cut by columns, rank {rank} of {size} has {given} numbers of the bias, but it computes only {right} outputs",
        ("bias.chunk(size)[rank]", "bias"),
    ),
    "bias-divided": Way(
        "with rows you gave each rank the bias divided by the {size} ranks. Every rank holds the whole bias, and row_linear "
        "adds it once, after the sum",
        ("[rank], bias\n", "[rank], bias / size\n"),
    ),
    "in-turns": Way(
        "you dealt the {how} out to the ranks in turn, one at a time. The slices must be contiguous: rank 0 has the "
        "whole first piece, so that the outputs side by side are those of the whole layer",
        ("weight.chunk(size, dim=0)[rank]", "weight[rank::size]"),
    ),
    "gradient-averaged": Way(
        "the gradient of x is the mean of the ranks' parts. All ranks use the same x, each with its own columns, so the "
        "parts must be added, not averaged",
        (
            "        dist.all_reduce(gradient)\n",
            "        dist.all_reduce(gradient)\n        gradient /= dist.get_world_size()\n",
        ),
    ),
    "bias-everywhere": Way(
        "the output of row_linear has the bias {size} times: every rank added it to its part, and the all_reduce added them "
        "up. Add it once, after the sum",
        ("SumForward.apply(linear(x, weight)) + bias", "SumForward.apply(linear(x, weight, bias))"),
    ),
    "no-bias": Way("the output of row_linear lacks the bias", ("linear(x, weight)) + bias", "linear(x, weight))")),
    "no-sum": Way(
        "row_linear returns only the rank's own part: an all_reduce must add the parts",
        ("SumForward.apply(linear(x, weight)) + bias", "linear(x, weight) + bias"),
    ),
    "sum-after-columns": Way(
        "column_linear sums forward: the ranks hold different outputs, whose sum means nothing. No rank needs another rank "
        "here",
        ("return linear(SumBackward.apply(x), weight, bias)", "return SumForward.apply(linear(x, weight, bias))"),
    ),
    "input-gradient": Way(
        "rank {rank} of {size} has only a part of the gradient of the input. Every rank has used the whole x, so the "
        "gradients of all ranks must be summed",
        ("linear(SumBackward.apply(x), weight, bias)", "linear(x, weight, bias)"),
    ),
    "sum-twice": Way(
        "gradients are {size} times too large on {size} ranks: row_linear sums backward, too. Each rank already gets the "
        "gradient of the whole output",
        ("    def backward(_ctx: object, gradient: torch.Tensor) -> torch.Tensor:\n        return gradient\n",
         "    def backward(_ctx: object, gradient: torch.Tensor) -> torch.Tensor:\n        gradient = gradient.clone()\n"
         "        dist.all_reduce(gradient)\n        return gradient\n"),
    ),
    "too-many-messages": Way(
        "{direction}, the two layers passed {calls} to collectives, {bytes:,} bytes: one all_reduce of {right:,} bytes is "
        "enough",
        ("linear(x, weight)) + bias", "linear(x, weight)) + SumForward.apply(bias * 0) + bias"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge the slices, and then the layers on 1, 2, 3 and 4 ranks, by values, gradients and messages."""
    from collectives import count_collectives

    counts = count_collectives()
    functions = {name: part.function(name) for name in ("cut", "column_linear", "row_linear")}
    for size in (2, 3, 1, 4):
        for rank in range(size):
            _check_cut(part, functions["cut"], rank, size)
    for size in (2, 3, 1, 4):
        for rank, outcome in enumerate(part.on_ranks(size, lambda rank, size: _run(part, functions, counts, rank, size))):
            _check_run(part, rank, size, outcome)
    part.note("equal to the whole layers on 1 to 4 ranks; one all_reduce forward, one backward")


def _whole() -> dict[str, Any]:
    """Return two layers and an input, the same on every rank."""
    import torch

    source = torch.Generator().manual_seed(7)
    shapes = {
        "x": (BATCH, WIDTH),
        "up": (4 * WIDTH, WIDTH),
        "up_bias": (4 * WIDTH,),
        "down": (WIDTH, 4 * WIDTH),
        "down_bias": (WIDTH,),
    }
    return {name: torch.randn(shape, generator=source, dtype=torch.float64) for name, shape in shapes.items()}


def _slices(rank: int, size: int) -> dict[str, tuple[Any, Any]]:
    whole = _whole()
    wide = 4 * WIDTH // size
    share = slice(rank * wide, (rank + 1) * wide)
    return {"columns": (whole["up"][share], whole["up_bias"][share]), "rows": (whole["down"][:, share], whole["down_bias"])}


def _check_cut(part: Part, cut: Any, rank: int, size: int) -> None:
    whole, case = _whole(), f"rank {rank} of {size}"
    for direction, name in {"columns": "up", "rows": "down"}.items():
        answer = part.call(cut, whole[name].clone(), whole[f"{name}_bias"].clone(), direction, rank, size, case=case)
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            part.compare([Case(f"cut by {direction}, {case}", answer, "a pair of tensors, weight and bias")])
        weight, bias = _slices(rank, size)[direction]
        if answer[0].shape != weight.shape:
            shapes = {"given": tuple(answer[0].shape), "right": tuple(weight.shape)}
            raise part.wrong("wrong-dimension", case, rank=rank, size=size, how=direction, **shapes)
        turns = whole[name][rank::size] if direction == "columns" else whole[name][:, rank::size]
        if size > 1 and answer[0].equal(turns):
            raise part.wrong("in-turns", case, how=direction, size=size)
        if any(answer[0].equal(_slices(other, size)[direction][0]) for other in range(size) if other != rank):
            raise part.wrong("same-slice", case, rank=rank, size=size, how=direction)
        part.compare([Case(f"the weight, cut by {direction}, {case}", answer[0], weight)])
        if direction == "columns" and answer[1].shape != bias.shape:
            raise part.wrong("whole-bias", case, rank=rank, size=size, given=len(answer[1]), right=len(bias))
        ways = {"bias-divided": bias / size} if direction == "rows" else {}
        part.compare([Case(f"the bias, cut by {direction}, {case}", answer[1], bias, ways, {"size": size})])


def _run(part: Part, functions: dict[str, Any], counts: Any, rank: int, size: int) -> dict[str, Any]:
    """Run both layers forward and backward on this rank. Return what they passed to collectives, and their errors."""
    import torch

    slices, whole = _slices(rank, size), _whole()
    x = whole["x"].clone().requires_grad_()
    leaves = {f"{direction} {kind}": tensor.clone().requires_grad_() for direction, pair in slices.items()
              for kind, tensor in zip(("weight", "bias"), pair, strict=True)}  # fmt: skip
    counts.clear()
    wide = part.call(functions["column_linear"], x, leaves["columns weight"], leaves["columns bias"])
    if not isinstance(wide, torch.Tensor) or wide.shape != (BATCH, 4 * WIDTH // size):
        answer = tuple(wide.shape) if isinstance(wide, torch.Tensor) else type(wide).__name__
        raise Verdict("failed", "shape", f"column_linear returns {answer}, but its share is {(BATCH, 4 * WIDTH // size)}")
    after_columns = list(counts.calls)
    out = part.call(functions["row_linear"], torch.nn.functional.gelu(wide), leaves["rows weight"], leaves["rows bias"])
    forward = list(counts.calls)
    if not isinstance(out, torch.Tensor) or out.shape != (BATCH, WIDTH):
        answer = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise Verdict("failed", "shape", f"row_linear returns {answer}, but the outputs are {(BATCH, WIDTH)}")
    counts.clear()
    part.call((out * out.detach().cos()).sum().backward)
    gradients = {"x": x.grad, **{name: leaf.grad for name, leaf in leaves.items()}}
    lists = {name: None if gradient is None else gradient.tolist() for name, gradient in gradients.items()}
    return {"after_columns": after_columns, "forward": forward, "backward": list(counts.calls), "wide": wide.tolist(),
            "out": out.tolist(), "gradients": lists}  # fmt: skip


def _right(rank: int, size: int) -> dict[str, Any]:
    """Return the outputs of the whole layers, and this rank's share of their gradients."""
    import torch

    whole = {name: tensor.requires_grad_() for name, tensor in _whole().items()}
    wide = torch.nn.functional.linear(whole["x"], whole["up"], whole["up_bias"])
    out = torch.nn.functional.linear(torch.nn.functional.gelu(wide), whole["down"], whole["down_bias"])
    (out * out.detach().cos()).sum().backward()
    share = 4 * WIDTH // size
    rows = slice(rank * share, (rank + 1) * share)
    gradients = {"x": whole["x"].grad, "columns weight": whole["up"].grad[rows], "columns bias": whole["up_bias"].grad[rows],
                 "rows weight": whole["down"].grad[:, rows], "rows bias": whole["down_bias"].grad}  # fmt: skip
    return {
        "wide": wide[:, rows].detach(),
        "out": out.detach(),
        "gradients": gradients,
        "bias": whole["down_bias"].detach(),
    }


def _check_run(part: Part, rank: int, size: int, outcome: dict[str, Any]) -> None:
    import torch

    right, case = _right(rank, size), f"rank {rank} of {size}"
    wide, out = torch.tensor(outcome["wide"], dtype=torch.float64), torch.tensor(outcome["out"], dtype=torch.float64)
    if not _equal(wide, right["wide"]):
        if outcome["after_columns"]:
            raise part.wrong("sum-after-columns", case)
        part.compare([Case(f"column_linear, {case}", wide, right["wide"])], tolerance=1e-9)
    if not _equal(out, right["out"]):
        if _equal(out, right["out"] + (size - 1) * right["bias"]):
            raise part.wrong("bias-everywhere", case, size=size)
        if _equal(out, right["out"] - right["bias"]):
            raise part.wrong("no-bias", case)
        if size > 1 and not outcome["forward"]:
            raise part.wrong("no-sum", case)
        part.compare([Case(f"row_linear, {case}", out, right["out"])], tolerance=1e-9)
    _check_gradients(part, rank, size, outcome, right)
    _check_messages(part, case, size, outcome)


def _check_gradients(part: Part, rank: int, size: int, outcome: dict[str, Any], right: dict[str, Any]) -> None:
    import torch

    case = f"rank {rank} of {size}"
    answer = {name: None if values is None else torch.tensor(values, dtype=torch.float64)
             for name, values in outcome["gradients"].items()}  # fmt: skip
    down, down_right = answer["rows weight"], right["gradients"]["rows weight"]
    if down is not None and size > 1 and _equal(down, size * down_right):
        raise part.wrong("sum-twice", case, size=size)
    for name in ("rows weight", "rows bias", "columns weight", "columns bias"):
        if answer[name] is None:
            says = f"no gradient reaches {name}: something between it and the outputs is detached, or copied outside autograd"
            raise Verdict("failed", "other", says, case)
        part.compare([Case(f"the gradient of {name}, {case}", answer[name], right["gradients"][name])], tolerance=1e-9)
    if answer["x"] is not None and not _equal(answer["x"], right["gradients"]["x"]) and not outcome["backward"]:
        raise part.wrong("input-gradient", case, rank=rank, size=size)
    if answer["x"] is not None and size > 1 and _equal(size * answer["x"], right["gradients"]["x"]):
        raise part.wrong("gradient-averaged", case)
    part.compare([Case(f"the gradient of x, {case}", answer["x"], right["gradients"]["x"])], tolerance=1e-9)


def _check_messages(part: Part, case: str, size: int, outcome: dict[str, Any]) -> None:
    right = 8 * BATCH * WIDTH
    for direction in ("forward", "backward"):
        calls = outcome[direction]
        total = sum(count for _, count in calls)
        if size > 1 and (len(calls) > 1 or total > right):
            names = ", ".join(name for name, _ in calls)
            raise part.wrong("too-many-messages", case, direction=direction, calls=names, bytes=total, right=right)


def _equal(answer: Any, right: Any) -> bool:
    return answer.shape == right.shape and bool(((answer - right).abs() <= 1e-9 * right.abs().max()).all())
