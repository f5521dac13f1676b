"""Hand a prompt's keys and values from the ranks that computed it to the ranks that will answer it.

Senders have the first ranks and pages of 16 tokens, receivers the next ranks and pages of 8. Both groups are cut by heads, and
seldom in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from sent_bytes import SentBytes
from sliced_model import HELD_HEADS, KV_HEADS, Slice, choose_from_all, make_model, serve

Piece = tuple[int, int, int, int]
"""A head that is sent: sender, its slot, receiver, its slot."""


def hand_over(
    world: Any, prompt: Sequence[int], count: int, senders: int, receivers: int, plan: Sequence[Piece] | None
) -> dict[str, Any]:
    """Compute the prompt on `senders` ranks and the answer on `receivers` others. Return the `tokens` and `bytes` of this rank.

    With a plan, each piece is sent once. Without one, every sender sends all its heads to every receiver.
    """
    sending, receiving = dist.new_group(list(range(senders))), dist.new_group(list(range(senders, senders + receivers)))
    rank, number = world.rank, world.rank - senders
    result: dict[str, Any] = {"tokens": None, "bytes": 0}
    if rank < senders:
        part = Slice(make_model(), rank, senders, HELD_HEADS[senders][rank], choose_from_all, sending)
        first = part.step(prompt)
        with SentBytes() as sent:
            _send(part, len(prompt), [_list_slots(plan, rank, receiver, part) for receiver in range(receivers)], senders)
        result["bytes"] = sent.numbers
        for receiver in range(receivers) if rank == 0 else ():
            dist.send(torch.tensor([first]), senders + receiver)
    elif number < receivers:
        part = Slice(make_model(), number, receivers, HELD_HEADS[receivers][number], choose_from_all, receiving, page_size=8)
        for sender in range(senders):
            _receive(part, len(prompt), sender, plan, HELD_HEADS[senders][sender], HELD_HEADS[receivers][number])
        part.receive(len(prompt))
        token = torch.zeros(1, dtype=torch.long)
        dist.recv(token, 0)
        result["tokens"] = [int(token)]
        while len(result["tokens"]) < count:
            result["tokens"].append(part.step(result["tokens"][-1:]))
    return result


def _list_slots(plan: Sequence[Piece] | None, sender: int, receiver: int, part: Slice) -> list[int]:
    """Return the slots that a sender sends to a receiver. Without a plan, it sends all of its slots."""
    if plan is None:
        return list(range(part.keys[0].shape[1]))
    return [slot for source, slot, target, _ in plan if (source, target) == (sender, receiver)]


def _send(part: Slice, length: int, slots: Sequence[Sequence[int]], first: int) -> None:
    """Send the keys and values of some heads to each receiver, in the order of the tokens.

    The first receiver is rank `first`.
    """
    for receiver, its_slots in enumerate(slots):
        for slot in its_slots:
            dist.send(torch.stack([held[part.slots[:length], slot] for held in [*part.keys, *part.values]]), first + receiver)


def _receive(
    part: Slice, length: int, sender: int, plan: Sequence[Piece] | None, its_heads: Sequence[int], heads: Sequence[int]
) -> None:
    """Receive the heads that a sender sends to this rank, and write them into the slots. Drop heads that it does not need."""
    if plan is None:
        slots = [heads.index(head) if head in heads else None for head in its_heads]
    else:
        slots = [slot for source, _, target, slot in plan if (source, target) == (sender, part.rank)]
    for slot in slots:
        piece = torch.empty(2 * len(part.keys), length, part.model.head_dim, dtype=part.model.dtype)
        dist.recv(piece, sender)
        if slot is not None:
            for held, numbers in zip([*part.keys, *part.values], piece, strict=True):
                held[part.slots[:length], slot] = numbers


def serve_with_your_heads(world: Any, prompt: list[int], count: int, senders: int, receivers: int) -> dict[str, Any]:
    """Answer the prompt with slices and a hand-over by the learner's my_heads.py. Return the row of this rank."""
    import my_heads

    torch.set_num_threads(1)
    slices = serve(world, prompt, count, my_heads.heads_of, choose_from_all)
    plan = [tuple(int(number) for number in piece) for piece in my_heads.pieces(KV_HEADS, senders, receivers)]
    return {"slices": slices, "handed": hand_over(world, prompt, count, senders, receivers, plan), "plan": plan}
