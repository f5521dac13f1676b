"""Judge my_fsdp.py of 6.7 on real ranks: shares, gradients, losses, bytes, blocks in memory, and the order of gathers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way

LAYERS, WIDTH, LENGTH, STEPS = 4, 16, 4, 3
SETTINGS = {"layers": LAYERS, "width": WIDTH, "length": LENGTH, "steps": STEPS}
SIZES = 3, 4, 2, 1  # 3 does not divide the numbers of a block
BLOCK = 12 * WIDTH**2 + 13 * WIDTH
TOLERANCE, ROUNDED = 1e-5, 0.02  # bfloat16 has eight significant bits
WAYS = {
    "sum": Way(
        "the gradients of the shares are the sum of {ranks} ranks' gradients. A reduce-scatter adds; DDP has the mean",
        ("share.float() / self.ranks", "share.float()"),
    ),
    "own-gradient": Way(
        "the gradient of a share is this rank's own: the other ranks' sequences do not count. It needs the mean over "
        "all ranks",
        (
            "dist.reduce_scatter_tensor(share, torch.nn.functional.pad(gradient, (0, -gradient.numel() % self.ranks)))\n"
            "        self.share.grad = share.float() / self.ranks",
            "gradient = torch.nn.functional.pad(gradient, (0, -gradient.numel() % self.ranks))\n"
            "        self.share.grad = gradient.chunk(self.ranks)[dist.get_rank()].float()",
        ),
    ),
    "all-reduce": Way(
        "with {ranks} ranks a step calls {count} all-reduces: each rank then has the sums of whole blocks. It needs only its "
        "share of them, for half of the bytes",
        (
            "dist.reduce_scatter_tensor(share, torch.nn.functional.pad(gradient, (0, -gradient.numel() % self.ranks)))",
            "gradient = torch.nn.functional.pad(gradient, (0, -gradient.numel() % self.ranks))\n"
            "        dist.all_reduce(gradient)\n        share = gradient.chunk(self.ranks)[dist.get_rank()].clone()",
        ),
    ),
    "no-gradient": Way(
        "after backward, the share of block {block} has no gradient: an optimizer skips it",
        ("self.share.grad = share.float() / self.ranks", "share = share.float() / self.ranks"),
    ),
    "too-early": Way(
        "when the first block begins to compute, {alive} whole blocks are in memory. At most two may be: the one that "
        "computes, and the next",
        (
            "register_forward_pre_hook(lambda *_: self.fetch(self.next))",
            "register_forward_pre_hook(\n            lambda *_: (self.fetch(self.next), self.next and self.next.next and "
            "self.next.next.issue()) and None\n        )",
        ),
    ),
    "not-freed": Way(
        "in forward, up to {alive} whole blocks are in memory. Whatever still refers to a block's memory keeps it: the "
        "tensors that autograd saves for backward are views of the weights",
        ("register_forward_hook(lambda *_: self.free())", "register_forward_hook(lambda *_: None)"),
    ),
    "not-freed-in-backward": Way(
        "forward frees its blocks, but in backward up to {alive} whole blocks are in memory: a block whose gradients are "
        "computed is not needed until the next step",
        ("            parameter.grad = None\n        self.free()\n", "            parameter.grad = None\n"),
    ),
    "not-gathered-again": Way(
        "block {block} is not gathered in backward, and its gradients are wrong: they were computed from memory that was "
        "freed after forward. Backward needs the weights too",
        (
            "register_full_backward_pre_hook(lambda *_: self.fetch(self.previous))",
            "register_full_backward_pre_hook(lambda *_: self.whole.untyped_storage().resize_(self.size) and None)",
        ),
    ),
    "no-prefetch": Way(
        "in forward, {late} of {count} blocks are gathered only after the block before them has ended: the links rest while a "
        "block computes, and the block waits while the links work. Begin the next gather earlier, with async_op=True",
        ("lambda *_: self.fetch(self.next)", "lambda *_: self.fetch(None)"),
    ),
    "waits-for-prefetch": Way(
        "in {side}, {late} of {count} gathers are issued in time, but waited for immediately, before the other block has "
        "computed: async_op=True returns a handle; wait for it only when its own block is about to compute",
        ("self.share.detach().to(self.wire), async_op=True)",
         "self.share.detach().to(self.wire), async_op=True)\n            self.work.wait()"),
    ),
    "no-prefetch-backward": Way(
        "forward gathers in time, but in backward {late} of {count} blocks are gathered only after the block before them has "
        "ended. Backward goes from the last block to the first",
        ("lambda *_: self.fetch(self.previous)", "lambda *_: self.fetch(None)"),
    ),
    "keeps-whole": Way(
        "with {ranks} ranks {kept:,} bytes of the blocks are left between two steps; the shares are {share:,} bytes. What "
        "else still refers to a block's memory, or to its gradients?",
        ("            parameter.grad = None\n", "            pass\n"),
    ),
    "weights-in-float32": Way(
        "with bfloat16 on the wire, the all-gathers still carry {wire}",
        (
            "dtype=self.wire, device=self.whole.device)\n"
            "            self.work = dist.all_gather_into_tensor(self.arrived, self.share.detach().to(self.wire),",
            "device=self.whole.device)\n"
            "            self.work = dist.all_gather_into_tensor(self.arrived, self.share.detach(),",
        ),
    ),
    "gradients-in-float32": Way(
        "with bfloat16 on the wire, the reduce-scatters still carry {wire}",
        (
            "for parameter in self.parameters]).to(self.wire)\n"
            "        share = torch.empty(self.share.numel(), dtype=self.wire, device=gradient.device)",
            "for parameter in self.parameters])\n        share = torch.empty(self.share.numel(), device=gradient.device)",
        ),
    ),
    "bfloat16-in-the-optimizer": Way(
        "with bfloat16 on the wire, the shares themselves have lost their last 16 bits: the optimizer's small updates then "
        "vanish. Only what is sent is rounded",
        (
            "self.share = torch.nn.Parameter(self.whole.chunk(self.ranks)[dist.get_rank()].clone())",
            "self.share = torch.nn.Parameter(self.whole.chunk(self.ranks)[dist.get_rank()].clone().to(wire).float())",
        ),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge three steps of SGD on 1 to 4 ranks, with float32 and with bfloat16 on the wire."""
    import fsdp_trial  # noqa: F401  # before the ranks are forked

    shard = part.function("shard")
    for size in SIZES:
        wires = ("float32", "bfloat16") if size == SIZES[0] else ("float32",)
        results = part.on_ranks(size, lambda rank, size, wires=wires: _train(part, shard, wires, rank, size))
        for wire in wires:
            for result in results:
                _check(part, size, wire, result[wire])
    part.note(f"DDP's gradients and losses on 1 to 4 ranks, {LAYERS} blocks of {BLOCK:,} numbers, {STEPS} steps")
    part.note("at most two whole blocks in memory; gathers ahead in forward and backward; bfloat16 only on the wire")


def _train(part: Part, shard: Any, wires: tuple[str, ...], rank: int, size: int) -> dict[str, dict[str, Any]]:
    """Train as DDP does, and with the learner's shares. Return this rank's results of both, for each type on the wire."""
    import warnings

    import fsdp_trial
    import torch
    import torch.distributed as dist

    warnings.filterwarnings("ignore", category=FutureWarning)  # newer names for the same collectives
    torch.set_num_threads(1)
    world = SimpleNamespace(rank=rank, size=size, device=torch.device("cpu"))
    settings = SETTINGS | {"batch_size": 2 * size}
    first: dict[str, Any] = {}

    class Sgd(torch.optim.SGD):
        """Keep the gradients of the first step."""

        def step(self) -> None:  # type: ignore[override]
            grads = [weight.grad for weight in self.param_groups[1]["params"]]
            first.setdefault("gradients", [None if grad is None else grad.tolist() for grad in grads])
            super().step()

    class Averaging(torch.optim.SGD):
        """Averages the gradients of all ranks first, as DDP does."""

        def step(self) -> None:  # type: ignore[override]
            weights = self.param_groups[1]["params"]
            rank_gradients = [weight.grad.clone() for weight in weights]
            for weight in weights:
                dist.all_reduce(weight.grad)
                weight.grad /= size
            if "right" not in first:
                each = len(weights) // LAYERS
                blocks = [slice(place, place + each) for place in range(0, len(weights), each)]
                first["own"] = [_cut(rank_gradients[block], rank, size) for block in blocks]
                first["right"] = [_cut([weight.grad for weight in weights[block]], rank, size) for block in blocks]
            super().step()

    def keep_whole(blocks: Any) -> Any:
        first["begin"] = [_cut([weight.detach() for weight in block.parameters()], rank, size) for block in blocks]
        return blocks, list(blocks.parameters())

    def make(kind: Any) -> Any:
        return lambda outside, weights: kind([{"params": outside}, {"params": list(weights)}], lr=0.5)

    ddp = fsdp_trial.train(world, keep_whole, make_optimizer=make(Averaging), **settings)
    answers = {}
    for wire in wires:

        def divide(blocks: Any, wire: str = wire) -> Any:
            shares = part.call(shard, list(blocks), getattr(torch, wire))
            _check_shares(part, shares, size)
            first["shares"] = [share.tolist() for share in shares]
            return blocks, shares

        first.pop("gradients", None)
        yours = part.call(fsdp_trial.train, world, divide, make_optimizer=make(Sgd), is_one_share=True, **settings,
                          case=f"{size} ranks, {wire}")  # fmt: skip
        answers[wire] = yours | first | {"right_losses": ddp["losses"]}
    return answers


def _cut(weights: list[Any], rank: int, size: int) -> list[float]:
    """Return this rank's share of these tensors."""
    import torch

    flat = torch.cat([weight.flatten() for weight in weights])
    return torch.nn.functional.pad(flat, (0, -flat.numel() % size)).chunk(size)[rank].tolist()  # type: ignore[no-any-return]


def _check_shares(part: Part, shares: Any, size: int) -> None:
    import torch

    case = f"{size} ranks"
    if not isinstance(shares, (list, tuple)) or len(shares) != LAYERS:
        raise Verdict("failed", "no-shares", f"return a list of {LAYERS} shares, one for each block", case)
    numbers = math.ceil(BLOCK / size)
    for share in shares:
        if not isinstance(share, torch.nn.Parameter) or share.dtype != torch.float32 or share.shape != (numbers,):
            kind = f"{type(share).__name__} of {getattr(share, 'dtype', None)} with shape {list(getattr(share, 'shape', []))}"
            text = f"a share is a torch.nn.Parameter of torch.float32 with shape [{numbers}], not a {kind}"
            raise Verdict("failed", "no-share", text, case)


def _check(part: Part, size: int, wire: str, result: dict[str, Any]) -> None:
    case = f"{size} ranks, {wire} on the wire"
    rounded = [_round(numbers) for numbers in result["begin"]]
    if wire == "bfloat16" and result["shares"] == rounded != result["begin"]:
        raise part.wrong("bfloat16-in-the-optimizer", case)
    part.compare([Case(f"shares, {case}", result["shares"], result["begin"])])
    if size > 1:
        _check_memory(part, size, case, result)
    _check_gradients(part, size, wire, case, result)
    gap = max((abs(loss - right) for loss, right in zip(result["losses"], result["right_losses"], strict=True)), default=0.0)
    if not gap <= (TOLERANCE if wire == "float32" else ROUNDED):
        text = (
            f"the losses are {result['losses']}, and those of DDP {result['right_losses']}: is each gathered weight up to date?"
        )
        raise Verdict("failed", "other", text, case)
    if size > 1:
        _check_costs(part, size, wire, case, result)


def _round(numbers: list[float]) -> list[float]:
    import torch

    return torch.tensor(numbers).bfloat16().tolist()  # type: ignore[no-any-return]


def _check_gradients(part: Part, size: int, wire: str, case: str, result: dict[str, Any]) -> None:
    for block, gradient in enumerate(result["gradients"]):
        if gradient is None:
            raise part.wrong("no-gradient", case, block=block)
    tolerance = TOLERANCE if wire == "float32" else ROUNDED
    right, answer = result["right"], result["gradients"]
    if _is_near(answer, right, tolerance):
        return
    for way, gradients in (("sum", [[number * size for number in row] for row in right]), ("own-gradient", result["own"])):
        if _is_near(answer, gradients, tolerance):
            raise part.wrong(way, case, ranks=size)
    missing = [block for block, count in enumerate(result["gathers"]) if count < 2]
    wrong = [block for block in range(LAYERS) if not _is_near([answer[block]], [right[block]], tolerance)]
    if size > 1 and missing and wrong:
        raise part.wrong("not-gathered-again", case, block=missing[0])
    part.compare([Case(f"gradient of the share of block {block}, {case}", answer[block], right[block]) for block in wrong],
                 tolerance=TOLERANCE)  # fmt: skip


def _is_near(rows: list[list[float]], right: list[list[float]], tolerance: float) -> bool:
    """Return whether all numbers agree within `tolerance` of the largest."""
    largest = max(abs(number) for row in right for number in row)
    return all(
        abs(number - its) <= tolerance * largest
        for row, other in zip(rows, right, strict=True)
        for number, its in zip(row, other, strict=True)
    )


def _check_memory(part: Part, size: int, case: str, result: dict[str, Any]) -> None:
    """Check that at most two blocks are whole, and that nothing but shares is left between two steps."""
    import fsdp_trial

    events, alive = [tuple(event) for event in result["events"]], result["alive"]
    loss, begin = events.index(("loss", -1)), events.index(("begin", 0))
    if alive[begin] > fsdp_trial.MAX_WHOLE:
        raise part.wrong("too-early", case, alive=alive[begin])
    if max(alive[: loss + 1]) > fsdp_trial.MAX_WHOLE:
        raise part.wrong("not-freed", case, alive=max(alive[: loss + 1]))
    if max(alive) > fsdp_trial.MAX_WHOLE:
        raise part.wrong("not-freed-in-backward", case, alive=max(alive))
    share = 4 * LAYERS * math.ceil(BLOCK / size)
    if result["kept_bytes"] > share + 4 * BLOCK // 2:
        raise part.wrong("keeps-whole", case, ranks=size, kept=result["kept_bytes"], share=share)


def _check_costs(part: Part, size: int, wire: str, case: str, result: dict[str, Any]) -> None:
    """Check kinds, types and bytes of collectives, and the order of gathers."""
    if "all_reduce" in result["calls"]:
        raise part.wrong("all-reduce", case, ranks=size, count=result["calls"]["all_reduce"])
    for kind, way in (("all_gather", "weights-in-float32"), ("reduce_scatter", "gradients-in-float32")):
        if result["wire"].get(kind) != wire:
            if wire == "bfloat16" and kind in result["wire"]:
                raise part.wrong(way, case, wire=result["wire"][kind])
            raise Verdict("failed", "other", f"a step has no {kind} of {wire}", case)
    whole = (size - 1) * math.ceil(BLOCK / size) * (4 if wire == "float32" else 2)
    least, most = (3 * LAYERS - 1) * whole, (3 * LAYERS) * whole  # the last block may stay for backward
    if not least <= result["sent_bytes"] <= most:
        calls = ", ".join(f"{count} {kind}" for kind, count in result["calls"].items())
        text = f"a rank sends {result['sent_bytes']:,.0f} bytes in a step ({calls}); two gathers and a reduce-scatter of each "
        raise Verdict("failed", "other", f"{text}block send {most:,.0f}", case)
    for side in ("forward", "backward"):
        if late := LAYERS - 1 - result[f"issued_{side}"]:
            raise part.wrong("no-prefetch" if side == "forward" else "no-prefetch-backward", case, late=late, count=LAYERS - 1)
        if late := LAYERS - 1 - result[f"ahead_{side}"]:
            raise part.wrong("waits-for-prefetch", case, late=late, count=LAYERS - 1, side=side)
