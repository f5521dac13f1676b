"""Judge my_gate.py of 9.2: choices and weights with and without a bias, the loss on ranks, and steps of the bias."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way

WAYS = {
    "not-normalised": Way(
        "the weights of token {token} add up to {total:.4g}: divide by the sum over its {k} experts",
        ("return weights / weights.sum(-1, keepdim=True), chosen", "return weights, chosen"),
    ),
    "by-scores": Way(
        "the weights of token {token} have the ratio of its scores, and scores may be negative: take the probabilities",
        ("weights = probabilities.gather(-1, chosen)", "weights = scores.gather(-1, chosen)"),
    ),
    "bias-in-weights": Way(
        "a bias changes the weights of token {token} from {right} to {given}: it may change which expert is chosen, not "
        "how much its output counts",
        ("weights = probabilities.gather(-1, chosen)", "weights = (probabilities + bias).gather(-1, chosen)"),
    ),
    "bias-ignored": Way(
        "token {token} keeps its experts {given} although a bias prefers {right}: add the bias before you choose",
        ("(probabilities + bias).topk", "probabilities.topk"),
    ),
    "bias-on-scores": Way(
        "token {token} gets experts {given} instead of {right}: the bias is added to probabilities, not to scores",
        ("(probabilities + bias).topk", "(scores + bias).topk"),
    ),
    "own-tokens-only": Way(
        "on three ranks the loss is {given} instead of {right}: that is the loss of one rank's tokens. Sum counts and "
        "probabilities over all ranks before you multiply them",
        (
            "    experts = probabilities.shape[-1]\n",
            "    experts, sum_over_ranks = probabilities.shape[-1], lambda tensor: tensor\n",
        ),
    ),
    "no-gradient": Way(
        "no gradient comes back from the loss: counts have none, so it has to come through the mean probability, without "
        "detach",
        ("sum_over_ranks(probabilities.sum(0))", "sum_over_ranks(probabilities.detach().sum(0))"),
    ),
    "not-times-experts": Way(
        "with equal loads the loss is {given} instead of 1: multiply by the number of experts, {experts}",
        ("return experts * (counts", "return (counts"),
    ),
    "wrong-sign": Way(
        "the busiest expert's bias grew from {before:.4g} to {after:.4g}: more load must make it less likely",
        ("(load.double().mean() - load)", "(load - load.double().mean())"),
    ),
    "by-difference": Way(
        "an expert with {load:.0f} pairs moved by {step:.4g}, but the speed is {speed}: every step is as large as the speed, "
        "whatever the difference",
        ("(load.double().mean() - load).sign()", "(load.double().mean() - load)"),
    ),
    "mean-moves": Way(
        "an expert with exactly the mean load moved by {step:.4g}: it keeps its bias",
        (
            "(load.double().mean() - load).sign()",
            "(1 - 2 * (load >= load.double().mean()).double())",
        ),
    ),
}
EXPERTS, TOLERANCE = 6, 1e-6


def judge(part: Part) -> None:
    """Judge routing in 32 and 64 bits, losses on one and three ranks with uneven tokens, and four steps."""
    import torch

    route, loss, step = (part.function(name) for name in ("route", "balance_loss", "next_bias"))
    for dtype in (torch.float64, torch.float32):
        for k in (2, 1, 3):
            _judge_route(part, route, k, dtype)
    _judge_loss(part, loss)
    _judge_step(part, step)
    part.note("right with and without a bias, for 1 to 3 experts a token, and on 3 ranks with 5, 0 and 9 tokens")


def _draw_scores(tokens: int, dtype: Any) -> Any:
    import torch

    return (2 * torch.sin(torch.arange(tokens * EXPERTS, dtype=torch.float64) * 1.7)).view(tokens, EXPERTS).to(dtype)


def _judge_route(part: Part, route: Any, k: int, dtype: Any) -> None:
    import torch

    scores = _draw_scores(9, dtype)
    probabilities = scores.double().softmax(-1)
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    for name, top in (("no bias", 0.0), ("a large bias", 1.0), ("a bias", 0.4)):
        bias = torch.linspace(top, -top, EXPERTS, dtype=dtype)
        case = f"k = {k}, {name}, {str(dtype)[6:]}"
        leaf = scores.clone().requires_grad_()
        result = part.call(route, leaf, bias.clone(), k, case=case)
        weights, chosen = _check_route(result, k, case)
        _judge_choices(part, case, chosen, scores.double(), bias.double())
        for token in range(len(scores)):
            _judge_weights(part, case, token, weights[token].detach().double(), chosen[token],
                           (scores[token].double(), probabilities[token], bias.double(), tolerance))  # fmt: skip
        if k > 1:
            weights[:, 0].sum().backward()
            if leaf.grad is None or not leaf.grad.abs().sum() > 0:
                raise Verdict("failed", "no-gradient-of-weights", "no gradient comes back from the weights to the scores", case)


def _judge_choices(part: Part, case: str, chosen: Any, scores: Any, bias: Any) -> None:
    k = chosen.shape[1]

    def sets(preferred: Any) -> list[set[int]]:
        return [set(row) for row in preferred.topk(k, -1).indices.tolist()]

    choices, probabilities = [set(row) for row in chosen.tolist()], scores.softmax(-1)
    right = sets(probabilities + bias)
    if choices == right:
        return
    token = next(token for token, pair in enumerate(zip(choices, right, strict=True)) if pair[0] != pair[1])
    values = {"token": token, "given": sorted(choices[token]), "right": sorted(right[token])}
    if choices == sets(probabilities):
        raise part.wrong("bias-ignored", case, **values)
    if choices == sets(scores + bias):
        raise part.wrong("bias-on-scores", case, **values)
    text = "token {token} has experts {given}, and {right} have the largest sum of probability and bias"
    raise Verdict("failed", "other", text.format_map(values), case)


def _check_route(result: Any, k: int, case: str) -> tuple[Any, Any]:
    import torch

    if not (isinstance(result, tuple) and len(result) == 2 and all(isinstance(part, torch.Tensor) for part in result)):
        raise Verdict("failed", "no-tensors", "route returns two tensors: weights and experts", case)
    weights, chosen = result
    if weights.shape != (9, k) or chosen.shape != (9, k) or chosen.is_floating_point():
        shapes = f"{tuple(weights.shape)} and {tuple(chosen.shape)} {chosen.dtype}"
        raise Verdict(
            "failed", "no-tensors", f"route returned {shapes} instead of (9, {k}) and (9, {k}) of whole numbers", case
        )
    return weights, chosen


def _judge_weights(part: Part, case: str, token: int, weights: Any, chosen: Any, inputs: tuple[Any, Any, Any, float]) -> None:
    import torch

    scores, probabilities, bias, tolerance = inputs
    right = probabilities[chosen] / probabilities[chosen].sum()
    if torch.allclose(weights, right, rtol=0, atol=tolerance):
        return

    def same(other: Any) -> bool:
        return bool(torch.allclose(weights, other, rtol=0, atol=tolerance))

    raw, moved = scores[chosen], (probabilities + bias)[chosen]
    values = {"token": token, "k": len(chosen), "total": float(weights.sum()), "right": _show(right), "given": _show(weights)}
    if same(probabilities[chosen]):
        raise part.wrong("not-normalised", case, **values)
    if same(raw) or same(raw / raw.sum()):
        raise part.wrong("by-scores", case, **values)
    if bias.abs().sum() > 0 and (same(moved) or same(moved / moved.sum()) or same(moved.softmax(-1))):
        raise part.wrong("bias-in-weights", case, **values)
    raise Verdict("failed", "other", f"the weights of token {token} are {_show(weights)} instead of {_show(right)}", case)


def _show(values: Any) -> str:
    return ", ".join(f"{value:.4g}" for value in values.tolist())


def _find_loss(probabilities: Any, chosen: Any) -> Any:
    import torch

    share = torch.bincount(chosen.flatten(), minlength=EXPERTS).double() / chosen.numel()
    return EXPERTS * (share * probabilities.mean(0)).sum()


def _judge_loss(part: Part, loss: Any) -> None:
    import torch

    even = torch.full((EXPERTS, EXPERTS), 1 / EXPERTS, dtype=torch.float64)
    name = "one rank, equal loads"
    value = _read(part.call(loss, even, torch.arange(EXPERTS)[:, None], lambda tensor: tensor, case=name), name)
    if abs(value - 1 / EXPERTS) < TOLERANCE:
        raise part.wrong("not-times-experts", name, given=f"{value:.6g}", experts=EXPERTS)
    part.compare([Case(name, value, 1.0)], tolerance=TOLERANCE)
    tokens = (5, 0, 9)
    scores = _draw_scores(sum(tokens), torch.float64)
    chosen = scores.topk(2, -1).indices
    whole = scores.clone().requires_grad_()
    right = _find_loss(whole.softmax(-1), chosen)
    right.backward()
    expected = float(right.detach())

    def run(rank: int, size: int) -> tuple[float, Any]:
        from balancing import sum_over_ranks

        place = slice(sum(tokens[:rank]), sum(tokens[: rank + 1]))
        leaf = scores[place].clone().requires_grad_()
        value = part.call(loss, leaf.softmax(-1), chosen[place], sum_over_ranks, case=f"{size} ranks")
        number = _read(value, f"{size} ranks")
        if not value.requires_grad:
            raise part.wrong("no-gradient", f"{size} ranks")
        value.backward()
        return number, None if leaf.grad is None else leaf.grad.tolist()

    name = "3 ranks with 5, 0 and 9 tokens"
    results = part.on_ranks(3, run)
    local = float(_find_loss(scores[:5].softmax(-1), chosen[:5]))
    result = results[0][0]
    if abs(result - local) < TOLERANCE:
        raise part.wrong("own-tokens-only", name, given=f"{result:.6g}", right=f"{expected:.6g}")
    part.compare([Case(name, value, expected) for value, _ in results], tolerance=TOLERANCE)
    gradient = torch.tensor([row for _, rows in results for row in rows or []], dtype=torch.float64)
    if gradient.numel() != whole.grad.numel() or not torch.allclose(gradient, whole.grad, rtol=0, atol=TOLERANCE):
        if not gradient.abs().sum() > 0:
            raise part.wrong("no-gradient", name)
        raise Verdict("failed", "other", "the loss is right, and its gradient differs from that of one process", name)


def _read(value: Any, case: str) -> float:
    import torch

    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise Verdict(
            "failed", "no-tensor", f"balance_loss returned {type(value).__name__}: it returns a tensor of one number", case
        )
    return float(value.detach())


def _judge_step(part: Part, step: Any) -> None:
    import torch

    for load in ([9.0, 3.0, 0.0, 6.0, 6.0, 12.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [100.0, 0.0, 0.0, 0.0, 0.0, 20.0]):
        before, loads = torch.linspace(-0.1, 0.1, EXPERTS), torch.tensor(load)
        name, speed = f"loads {load}", 0.01
        after = part.call(step, before.clone(), loads, speed, case=name)
        if not isinstance(after, torch.Tensor) or after.shape != before.shape:
            raise Verdict(
                "failed", "no-tensor", f"next_bias returned {type(after).__name__}: it returns a tensor ({EXPERTS})", name
            )
        moves, mean = (after - before).tolist(), sum(load) / len(load)
        busiest = load.index(max(load))
        if load[busiest] > mean and moves[busiest] > 1e-9:
            raise part.wrong("wrong-sign", name, before=float(before[busiest]), after=float(after[busiest]))
        for count, move in zip(load, moves, strict=True):
            if count == mean and abs(move) > 1e-6:
                raise part.wrong("mean-moves", name, step=move)
            right = speed * ((count < mean) - (count > mean))
            if abs(move - right) > 1e-6:
                raise part.wrong("by-difference", name, load=count, step=move, speed=speed)
