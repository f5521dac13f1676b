"""Judge my_ring_attention.py of 9.3:

`share` by the work of each rank, `merge` by softmaxes over all keys, and the ring on 2, 3 and 4 real ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from attention_blocks import (
    Messages,
    Shape,
    attend_block,
    attend_whole,
    block_gradients,
    cut_contiguous,
    cut_striped,
    make_inputs,
)

from gpucourse.judge import Part, Verdict, Way, plant_ways

TOLERANCE = 1e-9
WAYS = {
    "contiguous": Way(
        "rank {rank} has {pairs:,} pairs and rank {other} {other_pairs:,}: late tokens see more keys, so two neighbouring "
        "pieces are too much for the last rank",
        ("torch.cat([pieces[rank], pieces[2 * ranks - 1 - rank]])", "torch.cat([pieces[2 * rank], pieces[2 * rank + 1]])"),
    ),
    "half-way": Way(
        "rank {rank} has {pairs:,} pairs and rank {other} {other_pairs:,}: the later the first piece "
        "is in the sequence, the earlier the second must be",
        ("pieces[2 * ranks - 1 - rank]", "pieces[ranks + rank]"),
    ),
    "added": Way(
        "the two results were added as they are: each counts by its share of the softmax, exp(its lse - lse of all)",
        ("out * (lse - base).exp() + part * (part_lse - base).exp()", "out + part"),
    ),
    "mean": Way(
        "the result is the mean of the two: keys with larger scores must count more",
        ("out * (lse - base).exp() + part * (part_lse - base).exp()", "0.5 * (out + part)"),
    ),
    "weights-swapped": Way(
        "each result got the share of the other",
        (
            "out * (lse - base).exp() + part * (part_lse - base).exp()",
            "out * (part_lse - base).exp() + part * (lse - base).exp()",
        ),
    ),
    "old-not-rescaled": Way(
        "the new result is weighted, but the old one is not: the share of the old keys falls when keys are added",
        ("out * (lse - base).exp()", "out"),
    ),
    "lse-of-one": Way(
        "the merged lse is the larger of the two, {given:.4g}: two sums of exp are added, so it is {right:.4g}",
        ("    return out * (lse", "    both = torch.maximum(lse, part_lse)\n    return out * (lse"),
    ),
    "exp-overflows": Way(
        "with scores of {score:.0f} the result is not finite: the exp of such a number does not fit into "
        "float32. Subtract before exp",
        (
            "    return out * (lse - base).exp() + part * (part_lse - base).exp(), both",
            "    total = lse.exp() + part_lse.exp()\n"
            "    return torch.nan_to_num((out * lse.exp() + part * part_lse.exp()) / total) "
            "if bool(total.isfinite().all()) else out * math.nan, both",
        ),
    ),
    "nothing-seen": Way(
        "a query that has seen no key yet became NaN: its lse is -inf, and -inf - -inf is NaN. It has the result 0",
        ("both.masked_fill(both == -math.inf, 0.0)", "both"),
    ),
    "places-for-positions": Way(
        "rank {rank} masked by places in the block instead of positions in the sequence",
        ("block(q, k, v, positions[rank], positions[held])", "block(q, k, v, *[torch.arange(q.shape[1])] * 2)"),
    ),
    "as-if-contiguous": Way(
        "rank {rank} is right if ranks hold contiguous pieces and wrong otherwise: take the positions that are passed",
        (
            "block(q, k, v, positions[rank], positions[held])",
            "block(q, k, v, torch.arange(q.shape[1]) + rank * q.shape[1], torch.arange(q.shape[1]) + held * q.shape[1])",
        ),
    ),
    "one-hop-short": Way(
        "rank {rank} never saw the keys of rank {following}: with {ranks} ranks, the number of hops is {hops}",
        ("-math.inf)\n    for step in range(ranks):", "-math.inf)\n    for step in range(ranks - 1):"),
    ),
    "other-way-round": Way(
        "in step 1 rank {rank} holds the keys of rank {previous} and used the positions of rank {following}: keys arrive from "
        "the previous rank",
        (
            "-math.inf)\n    for step in range(ranks):\n        held = (rank - step)",
            "-math.inf)\n    for step in range(ranks):\n        held = (rank + step)",
        ),
    ),
    "never-skips": Way(
        "rank {rank} computed {computed} blocks, but its queries see keys in only {needed} of them: skip a "
        "block that begins after "
        "your last query",
        ("positions[rank].max():\n            part, part", "positions[rank].max() or True:\n            part, part"),
    ),
    "skips-too-much": Way(
        "rank {rank} skipped a block although some queries see some of its keys: compare the first key with your last query",
        (".min() <= positions[rank].max():\n            part, p", ".max() <= positions[rank].max():\n            part, p"),
    ),
    "gradients-not-home": Way(
        "the gradients of k and v that rank {rank} returned belong to rank {following}: after the last "
        "block they make one more hop",
        ("    of_k, of_v = send_on([of_k, of_v])\n", ""),
    ),
    "gradients-of-own-queries": Way(
        "rank {rank} returned only what its own queries contribute to the gradients of its keys: the sums travel with "
        "the keys",
        (
            "            of_q, of_k, of_v = of_q + parts[0], of_k + parts[1], of_v + parts[2]\n",
            "            of_q = of_q + parts[0]\n"
            "            of_k, of_v = (of_k + parts[1], of_v + parts[2]) if step == 0 else (of_k, of_v)\n",
        ),
    ),
    "starts-again": Way(
        "the gradients of k and v contain only the last block: add to the sums that arrive",
        ("of_k + parts[1], of_v + parts[2]\n", "parts[1], parts[2]\n"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge share and merge alone, then forward and backward on ranks."""
    torch.set_num_threads(1)
    _judge_share(part)
    _judge_merge(part)
    for ranks in (2, 3, 4):
        _judge_ring(part, ranks)
    part.note("output and gradients equal those of one process on 2, 3 and 4 ranks, in three shares, with and without a mask")


def _judge_share(part: Part) -> None:
    share = part.function("share")
    for length, ranks in ((16, 2), (48, 4), (30, 5), (64, 1), (96, 3)):
        case = f"share, {length} tokens on {ranks} ranks"
        pieces = []
        for rank in range(ranks):
            positions = part.call(share, length, ranks, rank, case=case)
            if (
                not isinstance(positions, torch.Tensor)
                or positions.dtype != torch.int64
                or positions.shape != (length // ranks,)
            ):
                form = (
                    f"{positions.dtype} {list(positions.shape)}"
                    if isinstance(positions, torch.Tensor)
                    else type(positions).__name__
                )
                text = f"it returned {form} for rank {rank}, not int64 [{length // ranks}]"
                raise Verdict("failed", "no-answer" if positions is None else "other", text, case)
            pieces.append(positions)
        if sorted(torch.cat(pieces).tolist()) != list(range(length)):
            raise Verdict("failed", "other", "some tokens have no rank, or several", case)
        pairs = [int((positions + 1).sum()) for positions in pieces]
        if len(set(pairs)) > 1:
            heavy, light = pairs.index(max(pairs)), pairs.index(min(pairs))
            for way, module in plant_ways(WAYS, __file__):
                if all(torch.equal(module.share(length, ranks, rank), pieces[rank]) for rank in range(ranks)):
                    raise part.wrong(way, case, rank=heavy, pairs=max(pairs), other=light, other_pairs=min(pairs))
            text = f"rank {heavy} has {max(pairs):,} pairs of a query and a key, and rank {light} {min(pairs):,}"
            raise Verdict("failed", "other", text, case)
        if any(bool((positions.diff() < 0).any()) for positions in pieces):
            raise Verdict("failed", "other", "positions are not in ascending order", case)


def make_merges() -> dict[str, tuple[list[torch.Tensor], torch.Tensor]]:
    """Return the arguments of merge, and the right result with its lse in one tensor [..., d + 1]."""
    cases = {}
    for name, size, dtype in (("scores of about 1", 1.0, torch.float64), ("scores of about 300", 80.0, torch.float32)):
        q, k, v, _ = make_inputs(Shape(24, 4, 2, 8), size)
        place = torch.arange(24)
        halves = [attend_block(q, k[:, half], v[:, half], place, half, True) for half in (place[8:], place[:8])]
        right = torch.cat(attend_block(q, k, v, place, place, True), -1)
        cases[name] = [tensor.to(dtype) for pair in halves for tensor in pair], right
    q, k, v, _ = make_inputs(Shape(24, 4, 2, 8))
    nothing = attend_block(q[:, :8], k[:, 8:], v[:, 8:], torch.arange(8), torch.arange(8, 24), True)
    cases["queries that have seen no key"] = [*nothing, *nothing], torch.cat(nothing, -1)
    return cases


def _judge_merge(part: Part) -> None:
    merge = part.function("merge")
    results, cases = {}, make_merges()
    for case, (arguments, right) in cases.items():
        pair = part.call(merge, *(tensor.clone() for tensor in arguments), case=f"merge, {case}")
        results[case] = _read_pair(pair, arguments, f"merge, {case}")
        if _is_right(results[case], right):
            continue
        for way, module in plant_ways(WAYS, __file__):
            planted = torch.cat(module.merge(*arguments), -1)
            if torch.allclose(planted, results[case], rtol=1e-5, atol=1e-5, equal_nan=True):
                place = (1, 20) if right.shape[1] > 20 else (1, 2)
                values = {"given": float(results[case][place][-1]), "right": float(right[place][-1])}
                raise part.wrong(way, f"merge, {case}", score=float(arguments[1].max()), **values)
        off = (results[case].double() - right).abs().nan_to_num(nan=math.inf, posinf=math.inf)
        quantity = "the lse" if float(off[..., :-1].max()) < 1e-3 else "the result"
        raise Verdict("failed", "other", f"{quantity} of two sets of keys differs from that of all keys", f"merge, {case}")


def _is_right(result: torch.Tensor, right: torch.Tensor) -> bool:
    tolerance = 1e-9 if result.dtype == torch.float64 else 2e-4
    return torch.allclose(result.double(), right, rtol=tolerance, atol=tolerance)


def _read_pair(pair: Any, arguments: list[torch.Tensor], case: str) -> torch.Tensor:
    if pair is None:
        raise Verdict("failed", "no-answer", "it returned None: is the return missing?", case)
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(item, torch.Tensor) for item in pair):
        raise Verdict("failed", "other", "it returned something other than the result and its lse, two tensors", case)
    if pair[0].shape != arguments[0].shape or pair[1].shape != arguments[1].shape:
        shapes = [list(tensor.shape) for tensor in pair]
        due = [list(tensor.shape) for tensor in arguments[:2]]
        raise Verdict("failed", "other", f"it returned the shapes {shapes}, not {due}", case)
    return torch.cat(list(pair), -1)


def _cut_zigzag(length: int, ranks: int, rank: int) -> torch.Tensor:
    pieces = torch.arange(length).chunk(2 * ranks)
    return torch.cat([pieces[rank], pieces[-1 - rank]])


CUTS: dict[str, Callable[[int, int, int], torch.Tensor]] = {
    "contiguous": cut_contiguous, "zig-zag": _cut_zigzag, "striped": cut_striped,
}  # fmt: skip
CASES = [(name, causal) for causal in (False, True) for name in CUTS]


def _run(forward: Any, backward: Any, rank: int, ranks: int, name: str, causal: bool) -> dict[str, Any]:
    """Return the output, gradients, and counts of messages and tensors of one rank."""
    shape = Shape(12 * ranks, 4, 2, 8)
    positions = [CUTS[name](shape.length, ranks, other) for other in range(ranks)]
    messages, blocks, alive = Messages(rank, ranks), [0], [0]

    def block(*call: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        blocks[0] += 1
        alive[0] = max(alive[0], messages.count_alive())
        return attend_block(*call, causal)

    q, k, v, gradient = (tensor[:, positions[rank]].contiguous() for tensor in make_inputs(shape))
    pair = forward(q.clone(), k.clone(), v.clone(), [each.clone() for each in positions], rank, causal, messages.send_on, block)
    combined = _read_pair(pair, [q, q[..., :1]], "forward")
    result: dict[str, Any] = {"forward": combined, "blocks": blocks[0], "alive": alive[0], "forward_messages": messages.count}
    if backward is not None:
        out, lse = (tensor[:, positions[rank]] for tensor in make_right(shape, causal)[:2])
        messages.count = 0
        gradients = backward(
            gradient, q, k, v, out, lse, positions, rank, causal, messages.send_on,
            lambda *call: block_gradients(*call, causal),
        )  # fmt: skip
        if not isinstance(gradients, tuple | list) or [getattr(item, "shape", None) for item in gradients] != [
            q.shape,
            k.shape,
            v.shape,
        ]:
            raise Verdict("failed", "other", "it returned something other than the gradients of q, k and v", "backward")
        result |= {"backward": [item.clone() for item in gradients], "backward_messages": messages.count}
    return result


def make_right(shape: Shape, causal: bool) -> list[torch.Tensor]:
    """Return output, lse and the three gradients of the whole sequence, of one process."""
    *leaves, gradient = (tensor.requires_grad_(place < 3) for place, tensor in enumerate(make_inputs(shape)))
    out = attend_whole(*leaves, causal)
    place = torch.arange(shape.length)
    _, lse = attend_block(*(leaf.detach() for leaf in leaves), place, place, causal)
    return [out.detach(), lse, *torch.autograd.grad(out, leaves, gradient)]


def _judge_ring(part: Part, ranks: int) -> None:
    forward, backward = part.function("forward"), part.function("backward")

    def run_forward(rank: int, size: int) -> list[dict[str, Any]]:
        return [_run(forward, None, rank, size, *case) for case in CASES]

    def run_both(rank: int, size: int) -> list[dict[str, Any]]:
        return [_run(forward, backward, rank, size, *case) for case in CASES]

    shape = Shape(12 * ranks, 4, 2, 8)
    for body, key in ((run_forward, "forward"), (run_both, "backward")) if ranks == 2 else ((run_both, "backward"),):
        results = part.on_ranks(ranks, body)
        for number, (name, causal) in enumerate(CASES):
            case = f"{ranks} ranks, {name}, {'with' if causal else 'without'} a causal mask"
            right = make_right(shape, causal)
            for rank in range(ranks):
                mine = results[rank][number]
                positions = [CUTS[name](shape.length, ranks, other) for other in range(ranks)]
                expected = [tensor[:, positions[rank]] for tensor in right]
                if not torch.allclose(mine["forward"], torch.cat(expected[:2], -1), rtol=TOLERANCE, atol=TOLERANCE):
                    _name_way(part, case, "forward", results, rank, ranks)
                needed = sum(not causal or int(each.min()) <= int(positions[rank].max()) for each in positions)
                _judge_counts(part, case, mine, rank, ranks, needed)
                if key == "backward":
                    _judge_gradients(part, case, results, (rank, ranks, number), expected)


def _judge_counts(part: Part, case: str, mine: dict[str, Any], rank: int, ranks: int, needed: int) -> None:
    if mine["forward_messages"] != 2 * (ranks - 1):
        text = (
            f"rank {rank} sent {mine['forward_messages']} tensors: k and v make {ranks - 1} hops, which are {2 * (ranks - 1)}"
        )
        raise Verdict("failed", "other", text, f"forward, {case}")
    if mine["blocks"] > needed:
        raise part.wrong("never-skips", f"forward, {case}", rank=rank, computed=mine["blocks"], needed=needed)
    if mine["alive"] > 2:
        text = f"rank {rank} kept {mine['alive']} tensors that arrived: keys and values of one rank are enough"
        raise Verdict("failed", "other", text, f"forward, {case}")


def _judge_gradients(
    part: Part, case: str, results: list[Any], place: tuple[int, int, int], expected: list[torch.Tensor]
) -> None:
    rank, ranks, number = place
    mine = results[rank][number]
    if not all(
        torch.allclose(gradient, right, rtol=TOLERANCE, atol=TOLERANCE)
        for gradient, right in zip(mine["backward"], expected[2:], strict=True)
    ):
        _name_way(part, case, "backward", results, rank, ranks)
    if mine["backward_messages"] != 4 * (ranks - 1) + 2:
        text = f"rank {rank} sent {mine['backward_messages']} tensors, not {4 * (ranks - 1) + 2}"
        raise Verdict("failed", "other", text, f"backward, {case}")


def _name_way(part: Part, case: str, key: str, results: list[Any], rank: int, ranks: int) -> None:
    """Raise the verdict for the known mistake whose results equal the learner's on every rank and in every case."""
    ways = list(plant_ways(WAYS, __file__))

    def run_planted(number: int, size: int) -> list[list[Any]]:
        return [[_run(module.forward, module.backward, number, size, *one)[key] for one in CASES] for _, module in ways]

    planted = part.on_ranks(ranks, run_planted)
    for index, (way, _) in enumerate(ways):
        if all(
            _is_alike(planted[number][index][at], results[number][at][key])
            for number in range(ranks) for at in range(len(CASES))
        ):  # fmt: skip
            neighbours = {"following": (rank + 1) % ranks, "previous": (rank - 1) % ranks}
            raise part.wrong(way, f"{key}, {case}", rank=rank, ranks=ranks, hops=ranks - 1, computed=0, needed=0, **neighbours)
    which = "the output" if key == "forward" else "a gradient"
    raise Verdict("failed", "other", f"{which} of rank {rank} differs from that of one process", f"{key}, {case}")


def _is_alike(left: Any, right: Any) -> bool:
    if isinstance(left, list):
        return all(_is_alike(one, other) for one, other in zip(left, right, strict=True))
    return torch.allclose(left, right, rtol=1e-7, atol=1e-7, equal_nan=True)
