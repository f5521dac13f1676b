"""Judge my_ring.py of 3.1: the sums must be exact, the messages small enough, and the order of calls must not deadlock."""

from __future__ import annotations

import functools
import itertools
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "whole-tensor": Way(
        "rank {rank} sent {sent:,} bytes for a tensor of {whole:,}. In a ring of {size}, a message is one chunk, and all "
        "messages together are 2(n-1)/n of the tensor, {right:,} bytes. Cut the tensor into {size} chunks and send one per "
        "step",
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
        "element {element} of rank {rank} lacks the value of rank {part}, and every message contains the values of only one "
        "rank. In the first half of the steps, add what arrives to your own chunk. If you replace the chunk, your own "
        "values are lost",
        ("incoming += arriving", "incoming.copy_(arriving)"),
    ),
    "unfinished-passed-on": Way(
        "element {element} of rank {rank} lacks the value of rank {part}. The first half is right, but the second begins with "
        "a chunk that has the values of {carried} of {size} ranks: pass on the chunk that you finished last",
        (
            "chunks[(rank - step) % size], chunks[(rank - step - 1) % size]",
            "chunks[(rank - step % (size - 1)) % size], chunks[(rank - step % (size - 1) - 1) % size]",
        ),
    ),
    "other-chunk": Way(
        "element {element} of rank {rank} contains numbers that belong to element {other}. What arrives is the chunk that the "
        "rank before has just sent: if rank r sends chunk r - s in step s, rank r receives chunk r - 1 - s",
        ("chunks[(rank - step - 1) % size]", "chunks[(rank - step - 2) % size]"),
    ),
    "other-type": Way(
        "element {element} of rank {rank} is {given:.0f}, but should be {right:.0f}: it was rounded as it was added. Sum in "
        "the type of the given tensor (torch.empty_like), not in float32",
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
        ("dist.irecv(arriving, preceding).wait()", "dist.irecv(arriving, preceding)"),
    ),
    "not-waited": Way(
        "rank {rank} returned without waiting for {count} of its messages ({kinds}). Until wait() returns, a chunk may not "
        "have been sent, or may not have arrived",
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
        ("dist.irecv(arriving, preceding)", "dist.irecv(arriving, following)"),
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
        "a message of {sent:,} bytes is received into a tensor of {taken:,}: sender and receiver use different chunks, or "
        "the receiving tensor differs from the chunk in length or type",
        ("torch.empty_like(incoming)", "torch.empty(len(incoming), dtype=torch.float16)"),
    ),
    "average": Way(
        "that is the average. AllReduce sums; a caller that needs the average, such as DDP, divides afterwards",
        ("        sending.wait()\n", "        sending.wait()\n    tensor /= size\n"),
    ),
    "not-in-place": Way(
        "`tensor` did not change. AllReduce works in place: write the sum into the given tensor, not into a copy",
        ("flat = tensor.view(-1)", "tensor = tensor.clone()\n    flat = tensor.view(-1)"),
    ),
    "messages": Way(
        "the sum is right, but rank {rank} sent {count} messages, and a ring of {size} sends 2(n-1) = {right}, one chunk each. "
        "Every additional message costs a latency; with fewer messages, each is larger than a chunk",
        (
            "sending = dist.isend(outgoing, following)",
            "empty = dist.isend(flat[:0], following)\n        dist.irecv(flat[:0], preceding).wait()\n        empty.wait()\n"
            "        sending = dist.isend(outgoing, following)",
        ),
    ),
}

RANKS = (3, 2, 4, 5, 1)
ROUNDED = 1e-6  # relative: more than the rounding of float32, and less than the effect of a misplaced chunk
BASE = 128  # in this base, the sum has one digit for each rank: how often the rank's part is in it


class RankResult(NamedTuple):
    """The result of one rank: its values and its calls."""

    values: list[float]
    events: list[Any]
    changed_early: bool
    never_waited: list[str]

    @property
    def sizes(self) -> list[int]:
        """Return the bytes of each message that the rank sent."""
        return [event.size for event in self.events if event.kind == "isend"]

    @property
    def first_numbers(self) -> list[float]:
        """Return the first number of each message that the rank sent."""
        return [event.first for event in self.events if event.kind == "isend"]


def judge(part: Part) -> None:
    """Judge one to five ranks, with every length from n to 4n elements, and with tensors of two dimensions."""
    from messages import Messages, watch

    messages = Messages()
    watch(messages)
    ring = part.function("ring_all_reduce")
    for size in RANKS:
        verdict = None
        try:
            part.on_ranks(size, functools.partial(_run, part, ring, messages), limit_s=10.0)
        except Verdict as failure:
            verdict = failure
        for shape in _list_shapes(size):
            with part.trying({"ranks": size, "elements": math.prod(shape)}):
                _judge_shape(part, size, shape, verdict)
    part.note(f"exact on 1 to {max(RANKS)} ranks with every length from n to 4n elements; 2(n-1) messages per rank")


def _judge_shape(part: Part, size: int, shape: tuple[int, ...], failure: Verdict | None) -> None:
    """Judge one tensor. `failure` is the verdict that ended the ranks, if any. Raises Verdict."""
    name = _name(size, shape)
    files = [_file("result", size, shape, rank) for rank in range(size)]
    if not all(file.exists() for file in files):
        assert failure is not None
        raise _explain(part, failure, size, shape)
    results = [_read_result(file) for file in files]
    _judge_messages(part, results, name)
    _judge_values(part, results, name)
    _judge_count(part, results, name)


def _list_shapes(size: int) -> list[tuple[int, ...]]:
    return [*((length,) for length in range(size, 4 * size + 1)), (3, 7), (1, 2 * size + 1)]


def _name(size: int, shape: tuple[int, ...]) -> str:
    return f"{size} rank{'s' * (size > 1)}, a tensor of {' x '.join(map(str, shape))}"


def _run(part: Part, ring: Any, messages: Any, rank: int, size: int) -> None:
    """Call the part on one rank with tensors whose sums show which ranks contributed. Write a file for each tensor."""
    import torch.distributed

    def refuse_other_ways(event: Any) -> None:  # immediately, because some ranks would never end
        if event.peer not in range(size):
            raise part.wrong("no-such-rank", name, peer=event.peer, last=size - 1)
        if size == 1:
            raise part.wrong("alone", name)
        if len(messages.sent_to) > 1 or messages.sent_to == {rank}:
            raise part.wrong("not-a-ring", name, peers=", ".join(map(str, sorted(messages.sent_to))))
        if size > 2 and event.kind == "irecv" and event.peer in messages.sent_to:
            raise part.wrong("back-and-forth", name, peer=event.peer)

    messages.on_event = refuse_other_ways
    dtype = torch.int64 if size == 4 else torch.float64
    for shape in _list_shapes(size):
        name = _name(size, shape)
        messages.restart(_file("messages", size, shape, rank))
        weights = _weights(math.prod(shape))
        tensor = torch.tensor([weight * BASE**rank for weight in weights], dtype=dtype).view(shape)
        part.call(ring, tensor, rank, size, case=name)
        result = (tensor.flatten().tolist(), messages.events, messages.changed_early, messages.never_waited)
        _file("result", size, shape, rank).write_text(json.dumps(result), encoding="utf-8")
        torch.distributed.barrier()  # so that no rank begins another tensor while one still waits


def _read_result(file: Path) -> RankResult:
    from messages import Event

    values, events, *counts = json.loads(file.read_text(encoding="utf-8"))
    return RankResult(values, [Event(*event) for event in events], *counts)


def _file(kind: str, size: int, shape: tuple[int, ...], rank: int) -> Path:
    """Return the path of a file in the folder of this try, which is removed afterwards."""
    return Path(f"{kind}-{size}-{'x'.join(map(str, shape))}-{rank}")


def _weights(count: int) -> list[int]:
    """Return a different prime for each element. None divides a sum of other elements, so a misplaced chunk is detected."""
    primes = (number for number in range(101, 1000) if all(number % divisor for divisor in range(2, 32)))
    return list(itertools.islice(primes, count))


def _explain(part: Part, verdict: Verdict, size: int, shape: tuple[int, ...]) -> Verdict:
    """Return the verdict on ranks that crashed or never ended with this tensor. It is based on their messages."""
    from messages import find_other_size, find_stuck, read_events

    if verdict.way not in {"crash", "hang", "error"}:
        return verdict
    name = _name(size, shape)
    logs = [read_events(_file("messages", size, shape, rank)) for rank in range(size)]
    if pair := find_other_size(logs):
        return part.wrong("other-size", name, sent=pair[0].size, taken=pair[1].size)
    if verdict.way != "hang":
        return verdict
    stuck = find_stuck(logs)
    if not stuck:
        return Verdict("failed", "hang", "it never ended, and no rank waits for a message: is there an endless loop?", name)
    rank, event = next(iter(stuck.items()))
    arrivals = sum(message.kind == "isend" and message.peer == rank for message in logs[event.peer])
    says = f"rank {rank} waits for ever for message {event.number + 1} from rank {event.peer}, which sent only {arrivals}"
    return Verdict("failed", "hang", says, name)


def _judge_messages(part: Part, results: list[RankResult], name: str) -> None:
    """Judge the messages: too few, too large, in an order that deadlocks, or with tensors used too early. Raises Verdict."""
    from messages import NOT_YET, find_stuck

    size, width, elements = len(results), 8, len(results[0].values)
    max_bytes = 2 * (size - 1) * width * -(-elements // size)  # with every chunk padded to the longest
    for rank, result in enumerate(results):
        if size > 1 and not result.sizes:
            raise part.wrong("no-messages", name, rank=rank, size=size)
        if sum(result.sizes) > max_bytes and max(result.sizes) >= width * elements:
            right = 2 * (size - 1) * width * elements // size
            raise part.wrong(
                "whole-tensor", name, rank=rank, size=size, sent=sum(result.sizes), whole=width * elements, right=right
            )
    stuck = find_stuck([result.events for result in results])
    for rank, event in stuck.items():
        raise part.wrong("deadlock", name, rank=rank, peer=event.peer)
    for rank, result in enumerate(results):
        if result.changed_early:
            raise part.wrong("changed-before-sent", name, rank=rank)
        if min(result.values) <= NOT_YET / 2:
            raise part.wrong("read-early", name, rank=rank)
        if result.never_waited:
            kinds = " and ".join(sorted(set(result.never_waited)))
            raise part.wrong("not-waited", name, rank=rank, count=len(result.never_waited), kinds=kinds)


def _judge_values(part: Part, results: list[RankResult], name: str) -> None:
    """Judge the sums by the ranks that contributed to them. Raises Verdict."""
    size, weights = len(results), _weights(len(results[0].values))
    contributions = [[weight * BASE**rank for weight in weights] for rank in range(size)]
    right = [sum(column) for column in zip(*contributions, strict=True)]
    if all(result.values == right for result in results):
        return
    if all(result.values == contributions[rank] for rank, result in enumerate(results)):
        raise part.wrong("not-in-place", name)
    if all(result.values in ([value / size for value in right], [value // size for value in right]) for result in results):
        raise part.wrong("average", name)
    even = len(right) // size * size
    if even and all(result.values == right[:even] + contributions[rank][even:] for rank, result in enumerate(results)):
        raise part.wrong("end-forgotten", name, count=len(right) - even, elements=len(right), size=size)
    is_somewhere = all(any(result.values[place] == value for result in results) for place, value in enumerate(right))
    for rank, result in enumerate(results):
        for element in (place for place, value in enumerate(result.values) if value != right[place]):
            counts = _count_parts(result.values[element], weights[element], size)
            if counts is None and abs(result.values[element] / right[element] - 1) < ROUNDED:
                values = {"given": result.values[element], "right": right[element]}
                raise part.wrong("other-type", name, rank=rank, element=element, **values)
            if counts is None:
                raise _explain_number(part, results, name, rank, element)
            no_all_gather = is_somewhere and len(result.sizes) == size - 1
            raise _explain_counts(part, results, name, {"rank": rank, "element": element}, counts, no_all_gather)


def _explain_counts(
    part: Part, results: list[RankResult], name: str, place: dict[str, int], counts: list[int], no_all_gather: bool
) -> Verdict:
    """Return the verdict on a sum in which some rank's value is missing or counted more than once."""
    if max(counts) > 1:
        return part.wrong("added-again", name, **place, part=counts.index(max(counts)), count=max(counts))
    if no_all_gather:
        return part.wrong("no-all-gather", name)
    return _explain_lack(part, results, name, place | {"part": counts.index(0)})


def _explain_lack(part: Part, results: list[RankResult], name: str, place: dict[str, int]) -> Verdict:
    """Return the verdict on a sum without some rank's value, from the number of ranks in each message."""
    size, weights = len(results), _weights(len(results[0].values))
    carried = [[_count_ranks(number, weights, size) for number in result.first_numbers] for result in results]
    if size > 2 and all(counts == [1] * len(counts) for counts in carried):
        return part.wrong("own-part-lost", name, **place)
    half = size - 1
    if size > 2 and all(counts[:half] == list(range(1, size)) and counts[half : half + 1] != [size] for counts in carried):
        return part.wrong("unfinished-passed-on", name, carried=carried[0][half], size=size, **place)
    return Verdict("failed", "other", "element {element} of rank {rank} lacks the value of rank {part}".format_map(place), name)


def _count_ranks(number: float, weights: list[int], size: int) -> int:
    """Return how many ranks' values are in the sum of an element, or 0 if the number is not such a sum."""
    counts = next((counts for weight in weights if (counts := _count_parts(number, weight, size))), [])
    return sum(counts)


def _explain_number(part: Part, results: list[RankResult], name: str, rank: int, element: int) -> Verdict:
    """Return the verdict on a number that is not a sum of the ranks' values for this element."""
    size, value = len(results), results[rank].values[element]
    weights = _weights(len(results[rank].values))
    sums = [sum(BASE**element_number for element_number in ranks) for count in range(size + 1)
            for ranks in itertools.combinations(range(size), count)]  # fmt: skip
    elements = (element_number for element_number in range(len(weights)) if element_number != element)
    for element_number in elements:
        if any(_count_parts(value - weights[element] * partial, weights[element_number], size) for partial in sums):
            return part.wrong("other-chunk", name, rank=rank, element=element, other=element_number)
    says = f"element {element} of rank {rank} is {value:g}, which is not a sum of numbers that the ranks had"
    return Verdict("failed", "other", says, name)


def _count_parts(value: float, weight: int, size: int) -> list[int] | None:
    """Return how often each rank's part is in the sum `value`, or None if the sum contains anything else."""
    if value < 0 or value != int(value) or int(value) % weight:
        return None
    remainder, counts = int(value) // weight, []
    for _ in range(size):
        remainder, count = divmod(remainder, BASE)
        counts.append(count)
    return None if remainder or max(counts) > size * size else counts


def _judge_count(part: Part, results: list[RankResult], name: str) -> None:
    right = 2 * (len(results) - 1)
    for rank, result in enumerate(results):
        if len(result.sizes) != right:
            raise part.wrong("messages", name, rank=rank, count=len(result.sizes), size=len(results), right=right)
