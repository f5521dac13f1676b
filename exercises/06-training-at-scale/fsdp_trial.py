"""Train a small transformer whose blocks are divided among the ranks, and record what each rank holds, sends, and when.

A function of the caller divides the blocks. Every rank has the whole embeddings and output layer; their gradients are averaged
here, and are not counted.
"""

from __future__ import annotations

import gc
import time
import warnings
import weakref
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from shard_bytes import SentBytes, count_bytes, take_local
from torch import nn
from torch.utils._pytree import tree_iter
from transformer import Block, Transformer, counting_text

SEED, VOCABULARY, HEAD = 0, 64, 64
ADAMW = {"lr": 2e-3, "betas": (0.9, 0.99), "eps": 1e-2, "weight_decay": 0.01}  # with a small eps, a sum would train like a mean
COUNTED = 1  # the second step is counted: DDP arranges its buckets in the first
MAX_WHOLE = 2  # the block that computes, and the next
_RELEASE_S = 2.0
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Event = tuple[str, int]
Row = dict[str, Any]
Divide = Callable[[nn.Sequential], tuple[nn.Module, Sequence[nn.Parameter]]]
"""Divides the blocks among the ranks. Returns what computes in their place, and this rank's weights."""


class _Mark(torch.autograd.Function):
    """Pass a tensor on, and call `report` when its gradient comes back."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, report: Callable[[], None]) -> torch.Tensor:
        ctx.report = report
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.report()
        return gradient, None


class WatchedBlock(Block):
    """A block that tells its recorder when its computation begins and ends, in forward and in backward."""

    def __init__(self, number: int, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.number, self.recorder = number, [None]  # a list, which torch does not look into
        self.places = [(module, name) for module in self.modules() for name, _ in module.named_parameters(recurse=False)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self._report("begin")
        x = _Mark.apply(x, lambda: self._report("end"))
        x = _Mark.apply(super().forward(x), lambda: self._report("begin"))
        self._report("end")
        return x

    def _report(self, event: str) -> None:
        if self.recorder[0] is not None:
            self.recorder[0].note(event, self.number, [getattr(module, name) for module, name in self.places])


class Recorder(SentBytes):
    """Records, inside a `with`, the collectives among all ranks, when blocks compute, and how many whole blocks are in memory.

    `events` are ("begin" or "end", block), ("gather", block), ("reduce", -1) and ("loss", -1), in the order of time. `pending`
    has, for each of them, how many collectives were issued and not yet waited for. `alive` has how many blocks are in memory. A
    block counts as in memory until more than half of the bytes that an all-gather wrote for it, or that it computes with, are
    freed.
    """

    def __init__(self, ranks: int, block_numbers: int, shares: Iterable[torch.Tensor] = ()) -> None:
        """`block_numbers` is how many numbers a block has. `shares` are this rank's shares, one for each block in order."""
        super().__init__(ranks)
        self._shares, self._block_numbers = [share.detach() for share in shares], block_numbers
        self._storages: list[tuple[int, int, weakref.ref[torch.UntypedStorage]]] = []
        self.events: list[Event] = []
        self.alive: list[int] = []
        self.pending: list[int] = []
        self.wire: dict[str, str] = {}
        self._waits = 0

    def __enter__(self) -> Recorder:  # noqa: PYI034 (Self is newer than Python 3.10)
        """Also see every wait for a collective, which is not an operation on tensors."""
        self._wait = dist.Work.wait
        dist.Work.wait = lambda work, *arguments, **options: self._count_wait(lambda: self._wait(work, *arguments, **options))
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        dist.Work.wait = self._wait
        super().__exit__(*error)

    def _count_wait(self, wait: Callable[[], object]) -> object:
        self._waits += 1
        return wait()

    def note(self, event: str, block: int = -1, weights: Iterable[torch.Tensor] = ()) -> None:
        """Record an event of a block, and `weights`, which belong to it."""
        for weight in map(take_local, weights):
            storage = weight.untyped_storage()
            if all(reference() is not storage for _, _, reference in self._storages):
                self._storages.append((block, weight.element_size(), weakref.ref(storage)))
        end = time.monotonic() + (_RELEASE_S if self.calls.get("all_gather") and max(self.alive, default=0) <= MAX_WHOLE else 0)
        while (count := self._count_alive()) > MAX_WHOLE and time.monotonic() < end:
            time.sleep(0.005)  # gloo's thread keeps a buffer for a moment after its wait has returned
        self.events.append((event, block))
        self.pending.append(sum(self.calls.values()) - self._waits)
        self.alive.append(count)

    def _count_alive(self) -> int:
        numbers: dict[int, float] = {}
        for number, size, reference in self._storages:
            if (storage := reference()) is not None:
                numbers[number] = numbers.get(number, 0) + storage.nbytes() / size
        return sum(count >= self._block_numbers / 2 for count in numbers.values())

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = super().__torch_dispatch__(function, types, args, kwargs)
        name = str(function).replace("allgather", "all_gather")
        self._waits += "wait_tensor" in name
        kind = next((kind for kind in ("all_gather", "reduce_scatter") if "c10d" in name and kind in name), None)
        if kind:
            tensors = [tensor for tensor in tree_iter((args, result)) if isinstance(tensor, torch.Tensor)]
            self.wire[kind] = str(tensors[0].dtype).removeprefix("torch.")
            if kind == "reduce_scatter":
                self.note("reduce")
            else:
                whole, sent = max(tensors, key=torch.numel), args[0 if "functional" in name else 1]
                part = sent[0] if isinstance(sent, (list, tuple)) else sent
                block = next((number for number, share in enumerate(self._shares) if _is_copy(part, share)), -1)
                self.note("gather", block, [whole])
        return result


def _is_copy(part: torch.Tensor, share: torch.Tensor) -> bool:
    return part.numel() == share.numel() and torch.equal(part.detach().flatten(), share.flatten().to(part.dtype))


def describe_order(events: Sequence[Event], pending: Sequence[int], layers: int) -> Row:
    """Return how often each block was gathered in a step, how many gathers were issued while another block computed, and how
    many of these were still under way.

    Each gather should be issued before the preceding block has ended, except the gathers of the first block in forward and of
    the last block in backward.
    """
    loss = events.index(("loss", -1))

    def count(first: int, last: int, pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
        issued = under_way = 0
        for block, previous in pairs:
            end = max((place for place in range(first, last) if events[place] == ("end", previous)), default=first)
            issued += ("gather", block) in events[first:end]
            under_way += ("gather", block) in events[first:end] and pending[end] > 0
        return issued, under_way

    issued_forward, ahead_forward = count(0, loss, ((block, block - 1) for block in range(1, layers)))
    issued_backward, ahead_backward = count(loss, len(events), ((block, block + 1) for block in range(layers - 1)))
    return {
        "gathers": [events.count(("gather", block)) for block in range(layers)],
        "issued_forward": issued_forward, "ahead_forward": ahead_forward,
        "issued_backward": issued_backward, "ahead_backward": ahead_backward,
    }  # fmt: skip


def list_storages() -> dict[int, torch.UntypedStorage]:
    """Return the memory behind all tensors of numbers that Python has made since gc.freeze, by address. Single numbers do not
    count."""
    gc.collect()
    everything = [item for item in gc.get_objects() if issubclass(type(item), torch.Tensor)]
    tensors = [item for item in everything if item.is_floating_point() and item.dim()]
    storages = [take_local(tensor).untyped_storage() for tensor in tensors]
    return {storage.data_ptr(): storage for storage in storages if storage.nbytes()}


def count_kept_bytes(apart: Container[int] = ()) -> int:
    """Return the bytes of these storages, without those at the addresses `apart`. The lowest of several measurements counts,
    because gloo's thread keeps a buffer for a moment after its wait has returned.
    """
    looks = []
    for _ in range(4):
        looks.append(sum(storage.nbytes() for place, storage in list_storages().items() if place not in apart))
        time.sleep(0.02)
    return min(looks)


def make_adamw(outside: list[nn.Parameter], weights: list[nn.Parameter]) -> torch.optim.Optimizer:
    """Return the run's optimizer, for the weights that every rank has whole and for its shares of the blocks."""
    return torch.optim.AdamW([*outside, *weights], **ADAMW)


def train(
    world: Any, divide: Divide, *, layers: int, width: int, length: int, batch_size: int, steps: int,
    make_optimizer: Callable[..., torch.optim.Optimizer] = make_adamw, is_one_share: bool = False,
) -> Row:  # fmt: skip
    """Train on every rank. Return this rank's losses, bytes, events of the counted step, and seconds of the later steps.

    `world` has rank, size and device. `is_one_share` says that this rank has one flat share of each block.
    """
    torch.manual_seed(SEED)
    heads = max(1, width // HEAD)
    model = Transformer(VOCABULARY, length, width, heads, 0).to(world.device)
    outside = list(model.parameters())
    gc.freeze()  # objects that exist already are no longer listed, which saves time
    blocks = nn.Sequential(*(WatchedBlock(number, width, heads) for number in range(layers))).to(world.device)
    block_numbers = sum(weight.numel() for weight in blocks[0].parameters())
    watched = list(blocks)
    net, weights = divide(blocks)
    optimizer = make_optimizer(outside, list(weights))
    losses, seconds, result = [], [], {}
    for step in range(steps):
        source = torch.Generator().manual_seed(1000 + step)
        text = counting_text(batch_size, length, VOCABULARY, source).chunk(world.size)[world.rank].to(world.device)
        recorder = Recorder(world.size, block_numbers, weights if is_one_share else ())
        start = time.perf_counter()
        if step == COUNTED:
            for block in watched:
                block.recorder[0] = recorder
            with recorder:
                loss = _find_loss(model, net, text)
                recorder.note("loss")
                loss.backward()
                recorder.note("backward ended")
            for block in watched:
                block.recorder[0] = None
            result = {
                **describe_order(recorder.events, recorder.pending, layers), "events": recorder.events,
                "alive": recorder.alive, "wire": recorder.wire, "calls": recorder.calls, "sent_bytes": recorder.ring_bytes,
                "gradients_bytes": count_bytes(weight.grad for weight in weights if weight.grad is not None)[1],
            }  # fmt: skip
        else:
            loss = _find_loss(model, net, text)
            loss.backward()
        for weight in outside:
            dist.all_reduce(weight.grad)
            weight.grad /= world.size
        optimizer.step()
        optimizer.zero_grad()
        if step > COUNTED:
            seconds.append(time.perf_counter() - start)
        losses.append(loss.item())
        del loss
    elsewhere = [
        *outside,
        *(value for values in optimizer.state.values() for value in values.values() if torch.is_tensor(value)),
    ]
    moments = [
        value for weight in weights for value in optimizer.state[weight].values() if torch.is_tensor(value) and value.dim()
    ]
    apart = {take_local(value).untyped_storage().data_ptr() for value in elsewhere}
    kept = count_kept_bytes(apart)
    gc.unfreeze()
    return result | {
        "losses": losses, "seconds": seconds, "moments_bytes": count_bytes(moments)[1],
        "weights_bytes": count_bytes(weights)[1], "block_numbers": block_numbers, "kept_bytes": kept,
    }  # fmt: skip


def _find_loss(model: Transformer, net: nn.Module, text: torch.Tensor) -> torch.Tensor:
    scores = model.scores(model.norm(net(model.token(text[:, :-1]) + model.place)))
    return nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())


def train_yours(world: Any, **settings: int) -> dict[str, Row]:
    """Train with the learner's my_fsdp.py, with float32 and with bfloat16 on the wire. Return this rank's result for each."""
    import my_fsdp

    warnings.filterwarnings("ignore", category=FutureWarning, message=".*deprecated.*")  # newer names for the same collectives
    if world.device.type == "cpu":
        torch.set_num_threads(1)  # this is a separate process

    def divide(blocks: nn.Sequential, wire: torch.dtype) -> tuple[nn.Module, Sequence[nn.Parameter]]:
        return blocks, my_fsdp.shard(list(blocks), wire)

    return {
        name: train(world, lambda blocks, wire=wire: divide(blocks, wire), is_one_share=True, **settings)
        for name, wire in TYPES.items()
    }
