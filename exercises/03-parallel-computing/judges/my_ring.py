"""Judges my_ring.py of 3.1: exact sums, the messages and their bytes, and an order of calls that cannot deadlock."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any, NamedTuple

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "whole-tensor": Way(
        "rank {rank} sent {sent:,} bytes for a tensor of {whole:,}: in a ring of {size} a message is one chunk, and all of "
        "them together are 2(n-1)/n of the tensor, {right:,} bytes. Cut the tensor into {size} chunks and send one per step",
        ("flat.tensor_split(size)", "[flat] * size"),
    ),
    "no-all-gather": Way(
        "each chunk is right on one rank only: that is a reduce-scatter, the first half. In n-1 further steps every rank must "
        "pass on the finished chunks, until every rank has all of them",
        ("range(2 * (size - 1))", "range(size - 1)"),
    ),
    "added-again": Way(
        "element {element} of rank {rank} contains the value of rank {part} {count} times. In the first half, add what arrives "
        "once; in the second half, what arrives is finished: replace your chunk with it, and add nothing",
        ("incoming.copy_(arriving)", "incoming += arriving"),
    ),
    "own-part-lost": Way(
        "element {element} of rank {rank} lacks the value of rank {part}. In the first half of the steps, add what arrives to "
        "your own chunk; if you replace it, your own values are lost",
        ("incoming += arriving", "incoming.copy_(arriving)"),
    ),
    "other-chunk": Way(
        "element {element} of rank {rank} holds numbers that belong to other elements. What arrives is the chunk that the rank "
        "before has just sent: if rank r sends chunk r - s in step s, rank r receives chunk r - 1 - s",
        ("chunks[(rank - step - 1) % size]", "chunks[(rank - step - 2) % size]"),
    ),
    "other-type": Way(
        "element {element} of rank {rank} is {given:.0f}, but should be {right:.0f}: it was rounded on the way. Sum in the "
        "type of the given tensor (torch.empty_like), not in float32",
        ("incoming += arriving", "incoming.copy_(incoming.float() + arriving.float())"),
    ),
    "end-forgotten": Way(
        "the last {count} of {elements} elements did not change: {elements} is not divisible by {size}, so some chunks "
        "must be longer than others",
        ("flat.tensor_split(size)", "flat[: len(flat) // size * size].tensor_split(size)"),
    ),
    "deadlock": Way(
        "every rank would wait for ever: rank {rank} waits until rank {peer} takes its message, and no rank has begun to "
        "receive. Start the send (isend), receive, and only then wait for the send",
        ("sending = dist.isend(outgoing, following)", "sending = dist.isend(outgoing, following); sending.wait()"),
    ),
    "changed-before-sent": Way(
        "rank {rank} changed a chunk between its isend and the wait for it: what the other rank then gets is undefined. "
        "Receive into a separate tensor, and wait for the send before you change the chunk",
        ("arriving = torch.empty_like(incoming)", "arriving = outgoing"),
    ),
    "read-early": Way(
        "rank {rank} used a chunk before it had arrived: irecv only begins to receive. Call wait() on what it returns, and "
        "use the chunk after that",
        ("dist.irecv(arriving, before).wait()", "dist.irecv(arriving, before)"),
    ),
    "not-waited": Way(
        "rank {rank} returned without waiting for {count} of its messages ({kinds}): until wait() returns, a chunk may "
        "not have been sent, or not have arrived",
        ("        sending.wait()\n", ""),
    ),
    "no-messages": Way(
        "rank {rank} sent no message with isend: with {size} ranks each has to send 2(n-1) of them. This function replaces "
        "the ready-made all_reduce",
        ("    flat = tensor.view(-1)\n", "    return dist.all_reduce(tensor)\n    flat = tensor.view(-1)\n"),
    ),
    "back-and-forth": Way(
        "it sends to rank {peer} and receives from rank {peer}: in a ring all chunks move in one direction, so receive "
        "from the previous rank and send to the next",
        ("dist.irecv(arriving, before)", "dist.irecv(arriving, following)"),
    ),
    "not-a-ring": Way(
        "it sent to the ranks {peers}: in a ring each rank sends only to the next one, and chunks for others go through it",
        ("dist.isend(outgoing, following)", "dist.isend(outgoing, (following + step) % size)"),
    ),
    "no-such-rank": Way(
        "it names rank {peer}, but the ranks are 0 to {last}: after the last comes rank 0 again, (rank + 1) % size",
        ("(rank + 1) % size", "rank + 1"),
    ),
    "alone": Way(
        "a single rank sent a message to itself: with n = 1 there are 2(n-1) = 0 messages, and the sum is its own tensor",
        ("step in range(2 * (size - 1))", "step in range(2 * (size - 1) or 1)"),
    ),
    "other-size": Way(
        "a message of {sent:,} bytes is received into a tensor of {taken:,}: sender and receiver mean another chunk, or the "
        "tensor for what arrives has another length or type than the chunk",
        ("torch.empty_like(incoming)", "torch.empty(len(incoming), dtype=torch.float16)"),
    ),
    "average": Way(
        "that is the average. AllReduce sums; whoever wants an average (as DDP does) divides afterwards",
        ("        sending.wait()\n", "        sending.wait()\n    tensor /= size\n"),
    ),
    "not-in-place": Way(
        "`tensor` holds afterwards what it held before. AllReduce works in place: write the sum into the tensor that was "
        "given, not into a copy",
        ("flat = tensor.view(-1)", "tensor = tensor.clone()\n    flat = tensor.view(-1)"),
    ),
    "messages": Way(
        "the sum is right, and rank {rank} sent {count} messages where a ring of {size} sends 2(n-1) = {right}, one chunk "
        "each: more cost a latency each, fewer are larger than a chunk",
        (
            "sending = dist.isend(outgoing, following)",
            "empty = dist.isend(flat[:0], following)\n        dist.irecv(flat[:0], before).wait()\n        empty.wait()\n"
            "        sending = dist.isend(outgoing, following)",
        ),
    ),
}

SHAPES = {3: (9,), 2: (5,), 4: (3, 7), 5: (13,), 1: (4,)}  # by the number of ranks
ROUNDED = 1e-6  # relative: more than float32 takes off, and less than what a misplaced chunk does
BASE = 128  # the sum, written in this base, has one digit for each rank: how often its part is in it


class RankResult(NamedTuple):
    """What one rank did and holds."""

    values: list[float]
    events: list[Any]
    changed_early: bool
    never_waited: list[str]

    @property
    def sizes(self) -> list[int]:
        """The bytes of each message that it sent."""
        return [event.size for event in self.events if event.kind == "isend"]


def judge(part: Part) -> None:
    """One to five ranks: sizes that divide by them and sizes that do not, other shapes and types."""
    from messages import Event, Messages, watch

    messages = Messages()
    watch(messages)
    ring = part.function("ring_all_reduce")
    for size, shape in SHAPES.items():
        name = f"{size} rank{'s' * (size > 1)}, a tensor of {' x '.join(map(str, shape))}"

        def body(rank: int, size: int, name: str = name) -> tuple[Any, ...]:
            return _run(part, ring, messages, name, rank, size)

        try:
            answers = part.on_ranks(size, body, limit_s=10.0)
        except Verdict as verdict:
            raise _explain(part, verdict, size, name) from None
        results = [RankResult(values, [Event(*event) for event in events], *rest) for values, events, *rest in answers]
        _judge_messages(part, results, name)
        _judge_values(part, results, name)
        _judge_count(part, results, name)
    part.note(f"exact on 1 to {len(SHAPES)} ranks, also if the elements do not divide evenly; 2(n-1) messages per rank")


def _run(part: Part, ring: Any, messages: Any, name: str, rank: int, size: int) -> tuple[Any, ...]:
    """Call the part on one rank with a tensor whose sum tells whose parts are in it."""
    import torch

    def refuse_other_ways(event: Any) -> None:  # at once: some of them would never end
        if event.peer not in range(size):
            raise part.wrong("no-such-rank", name, peer=event.peer, last=size - 1)
        if size == 1:
            raise part.wrong("alone", name)
        if len(messages.sent_to) > 1 or messages.sent_to == {rank}:
            raise part.wrong("not-a-ring", name, peers=", ".join(map(str, sorted(messages.sent_to))))
        if size > 2 and event.kind == "irecv" and event.peer in messages.sent_to:
            raise part.wrong("back-and-forth", name, peer=event.peer)

    messages.on_event = refuse_other_ways
    messages.file = _file(rank, size)
    dtype = torch.int64 if size == 4 else torch.float64
    tensor = torch.tensor([weight * BASE**rank for weight in _weights(size)], dtype=dtype).view(SHAPES[size])
    part.call(ring, tensor, rank, size, case=name)
    events = [tuple(event) for event in messages.events]
    return tensor.flatten().tolist(), events, messages.changed_early, messages.never_waited


def _file(rank: int, size: int) -> Path:
    return Path(f"messages-{size}-{rank}")  # in the folder of this try, which is new and removed afterwards


def _weights(size: int) -> list[int]:
    """Another prime for each element, which divides no sum of what belongs to other elements: a misplaced chunk shows."""
    primes = (number for number in range(101, 1000) if all(number % divisor for divisor in range(2, 32)))
    return list(itertools.islice(primes, math.prod(SHAPES[size])))


def _explain(part: Part, verdict: Verdict, size: int, name: str) -> Verdict:
    """The verdict on ranks that crashed or never ended, from the messages up to there."""
    from messages import find_other_size, find_stuck, read_events

    if verdict.way not in {"crash", "hang", "error"}:
        return verdict
    logs = [read_events(_file(rank, size)) for rank in range(size)]
    if pair := find_other_size(logs):
        return part.wrong("other-size", name, sent=pair[0].size, taken=pair[1].size)
    if verdict.way != "hang":
        return verdict
    stuck = find_stuck(logs)
    if not stuck:
        return Verdict(
            "failed", "hang", "it never ended, and no rank waits for a message: is there a loop without an end?", name
        )
    rank, event = next(iter(stuck.items()))
    came = sum(sent.kind == "isend" and sent.peer == rank for sent in logs[event.peer])
    says = f"rank {rank} waits for ever for message {event.number + 1} from rank {event.peer}, which sent it only {came}"
    return Verdict("failed", "hang", says, name)


def _judge_messages(part: Part, results: list[RankResult], name: str) -> None:
    """Raise what is wrong with the messages: none, too large, an order that gets stuck, tensors used too early."""
    from messages import NOT_YET, find_stuck

    size, width, elements = len(results), 8, len(results[0].values)
    most = 2 * (size - 1) * width * -(-elements // size)  # with every chunk padded to the longest
    for rank, mine in enumerate(results):
        if size > 1 and not mine.sizes:
            raise part.wrong("no-messages", name, rank=rank, size=size)
        if sum(mine.sizes) > most and max(mine.sizes) >= width * elements:
            right = 2 * (size - 1) * width * elements // size
            raise part.wrong(
                "whole-tensor", name, rank=rank, size=size, sent=sum(mine.sizes), whole=width * elements, right=right
            )
    stuck = find_stuck([mine.events for mine in results])
    for rank, event in stuck.items():
        raise part.wrong("deadlock", name, rank=rank, peer=event.peer)
    for rank, mine in enumerate(results):
        if mine.changed_early:
            raise part.wrong("changed-before-sent", name, rank=rank)
        if min(mine.values) <= NOT_YET / 2:
            raise part.wrong("read-early", name, rank=rank)
        if mine.never_waited:
            kinds = " and ".join(sorted(set(mine.never_waited)))
            raise part.wrong("not-waited", name, rank=rank, count=len(mine.never_waited), kinds=kinds)


def _judge_values(part: Part, results: list[RankResult], name: str) -> None:
    """Raise what is wrong with the sums, by whose parts are in them."""
    size, weights = len(results), _weights(len(results))
    brought = [[weight * BASE**rank for weight in weights] for rank in range(size)]
    right = [sum(column) for column in zip(*brought, strict=True)]
    if all(mine.values == right for mine in results):
        return
    if all(mine.values == brought[rank] for rank, mine in enumerate(results)):
        raise part.wrong("not-in-place", name)
    if all(mine.values in ([value / size for value in right], [value // size for value in right]) for mine in results):
        raise part.wrong("average", name)
    even = len(right) // size * size
    if even and all(mine.values == right[:even] + brought[rank][even:] for rank, mine in enumerate(results)):
        raise part.wrong("end-forgotten", name, count=len(right) - even, elements=len(right), size=size)
    somewhere = all(any(mine.values[place] == value for mine in results) for place, value in enumerate(right))
    for rank, mine in enumerate(results):
        for element in (place for place, value in enumerate(mine.values) if value != right[place]):
            counts = _count_parts(mine.values[element], weights[element], size)
            if counts is None and abs(mine.values[element] / right[element] - 1) < ROUNDED:
                values = {"given": mine.values[element], "right": right[element]}
                raise part.wrong("other-type", name, rank=rank, element=element, **values)
            if counts is None:
                raise part.wrong("other-chunk", name, rank=rank, element=element)
            if max(counts) > 1:
                raise part.wrong(
                    "added-again", name, rank=rank, element=element, part=counts.index(max(counts)), count=max(counts)
                )
            if somewhere and len(mine.sizes) < 2 * (size - 1):
                raise part.wrong("no-all-gather", name)
            raise part.wrong("own-part-lost", name, rank=rank, element=element, part=counts.index(0))


def _count_parts(value: float, weight: int, size: int) -> list[int] | None:
    """How often each rank's part is in the sum `value`; None if something else is in it."""
    if value < 0 or value != int(value) or int(value) % weight:
        return None
    rest, counts = int(value) // weight, []
    for _ in range(size):
        rest, count = divmod(rest, BASE)
        counts.append(count)
    return None if rest or max(counts) > size * size else counts


def _judge_count(part: Part, results: list[RankResult], name: str) -> None:
    right = 2 * (len(results) - 1)
    for rank, mine in enumerate(results):
        if len(mine.sizes) != right:
            raise part.wrong("messages", name, rank=rank, count=len(mine.sizes), size=len(results), right=right)
