"""Judge my_heads.py of 8.7 by the heads that each rank would read, and by the heads that a hand-over would deliver."""

from __future__ import annotations

import numbers
from collections import Counter
from typing import Any

from gpucourse.judge import Part, Verdict, Way

SLICES = ((1, 8), (2, 8), (8, 8), (4, 2), (8, 2), (2, 2), (8, 1), (3, 6))  # ranks, heads
HAND_OVERS = ((8, 2, 2), (8, 2, 4), (8, 4, 2), (8, 4, 1), (2, 4, 2), (2, 2, 4), (2, 8, 4), (4, 4, 4), (8, 1, 8), (4, 2, 8),
              (2, 4, 4))  # fmt: skip
WAYS = {
    "first-heads": Way(
        "rank {rank} of {ranks} computes query heads that read key-value head {right}, but you returned head {answer}: every "
        "rank then has the first heads",
        ("return list(range(rank * heads // ranks, (rank + 1) * heads // ranks))", "return list(range(heads // ranks))"),
    ),
    "in-turns": Way(
        "rank {rank} of {ranks} gets heads {answer} instead of {right}: its query heads are neighbours, and neighbours "
        "share a key-value head. A rank gets neighbouring heads, not heads at equal distances",
        ("return list(range(rank * heads // ranks, (rank + 1) * heads // ranks))", "return list(range(rank, heads, ranks))"),
    ),
    "copies-in-turns": Way(
        "with {ranks} ranks and {heads} heads, rank {rank} gets head {answer} instead of {right}: copies of a head are on "
        "neighbouring ranks, since neighbouring query heads share it",
        ("return [rank * heads // ranks]", "return [rank % heads]"),
    ),
    "all-heads": Way(
        "rank {rank} of {ranks} holds all {heads} heads: then slices save no memory at all",
        ("return list(range(rank * heads // ranks, (rank + 1) * heads // ranks))", "return list(range(heads))"),
    ),
    "heads-nowhere": Way(
        "with {ranks} ranks and {heads} heads, no rank holds head {head}",
        (
            "return list(range(rank * heads // ranks, (rank + 1) * heads // ranks))",
            "return list(range(rank * heads // ranks, (rank + 1) * heads // ranks - (rank + 1 == ranks and ranks > 1)))",
        ),
    ),
    "head-for-a-slot": Way(
        "sender {sender} has slots 0 to {last}, but the plan reads its slot {slot}: a slot counts the heads of that rank, not"
        " of the model",
        ("heads_of(sender, senders, heads).index(head), receiver, to_slot", "head, receiver, to_slot"),
    ),
    "head-for-a-receivers-slot": Way(
        "receiver {receiver} has slots 0 to {last}, but the plan writes its slot {slot}: a slot counts the heads of that rank",
        (
            "heads_of(sender, senders, heads).index(head), receiver, to_slot",
            "heads_of(sender, senders, heads).index(head), receiver, head",
        ),
    ),
    "every-copy-sends": Way(
        "slot {slot} of receiver {receiver} is written {count} times: of the senders that hold the same head, only one sends "
        "it",
        (
            "            plan.append((sender, heads_of(sender, senders, heads).index(head), receiver, to_slot))",
            "            plan += [(sender, "
            "heads_of(sender, senders, heads).index(head), receiver, to_slot"
            ") for sender in holders]",
        ),
    ),
    "one-copy-sends-all": Way(
        "one sender sends {count} pieces, but {least} would be enough: several senders hold the same heads, so they can share"
        " the work",
        ("sender = min(holders, key=lambda holder: (work[holder], holder))", "sender = holders[0]"),
    ),
    "copies-forgotten": Way(
        "receiver {receiver} never gets head {head}: {receivers} receivers of {heads} heads hold copies, and each copy has to "
        "be sent",
        ("for receiver in range(receivers):", "for receiver in range(min(receivers, heads)):"),
    ),
}


def judge(part: Part) -> None:
    """Judge the heads of every rank for several numbers of ranks, then the heads that eleven hand-overs deliver."""
    heads_of, pieces = part.function("heads_of"), part.function("pieces")
    for ranks, heads in SLICES:
        _judge_heads(part, heads_of, ranks, heads)
    for heads, senders, receivers in HAND_OVERS:
        case = f"{heads} heads, {senders} senders, {receivers} receivers"
        _judge_plan(part, part.call(pieces, heads, senders, receivers, case=case), case, heads, senders, receivers)
    part.note(f"{len(SLICES)} cuts, and {len(HAND_OVERS)} hand-overs in which each slot arrives once")


def _list_heads(rank: int, ranks: int, heads: int) -> list[int]:
    """Return the heads that the query heads of this rank read, with `ranks` query heads for each head."""
    return sorted({query // ranks for query in range(rank * heads, (rank + 1) * heads)})


def _read_list(answer: Any) -> Any:
    """Return an array, a tensor or a tuple as a list, and anything else unchanged."""
    return answer.tolist() if hasattr(answer, "tolist") else list(answer) if isinstance(answer, tuple) else answer


def _judge_heads(part: Part, heads_of: Any, ranks: int, heads: int) -> None:
    case = f"{ranks} rank{'s' if ranks > 1 else ''}, {heads} head{'s' if heads > 1 else ''}"
    answers = [_read_list(part.call(heads_of, rank, ranks, heads, case=case)) for rank in range(ranks)]
    for rank, answer in enumerate(answers):
        if not isinstance(answer, list) or not all(isinstance(head, numbers.Integral) for head in answer):
            raise Verdict("failed", "no-list", f"heads_of returns a list of whole numbers, not {answer!r:.60}", case)
        right = _list_heads(rank, ranks, heads)
        values = {"rank": rank, "ranks": ranks, "heads": heads}
        if answer == right:
            continue
        if answer == list(range(heads)):
            raise part.wrong("all-heads", case, **values)
        if ranks > heads and answer == [rank % heads]:
            raise part.wrong("copies-in-turns", case, answer=answer[0], right=right[0], **values)
        if answer == list(range(rank, heads, ranks)):
            raise part.wrong("in-turns", case, answer=answer, right=right, **values)
        if rank and answer == answers[0]:
            raise part.wrong("first-heads", case, answer=answer[0] if answer else "none", right=right[0], **values)
        if missing := set(range(heads)) - {head for one in answers for head in one}:
            raise part.wrong("heads-nowhere", case, head=min(missing), **values)
        raise Verdict("failed", "other", f"rank {rank} gets heads {answer} instead of {right}", case)


def _judge_plan(part: Part, plan: Any, case: str, heads: int, senders: int, receivers: int) -> None:
    if not isinstance(plan, (list, tuple)) or not all(
        isinstance(piece, (list, tuple)) and len(piece) == 4 and all(isinstance(number, numbers.Integral) for number in piece)
        for piece in plan
    ):
        raise Verdict("failed", "no-plan", "pieces returns a list of (sender, slot, receiver, slot), all whole numbers", case)
    target = [_list_heads(rank, receivers, heads) for rank in range(receivers)]
    arrived = _deliver(part, plan, case, [_list_heads(rank, senders, heads) for rank in range(senders)], target)
    for receiver, its_heads in enumerate(target):
        for slot, head in enumerate(its_heads):
            if (receiver, slot) not in arrived and receivers > heads:
                raise part.wrong("copies-forgotten", case, receiver=receiver, head=head, receivers=receivers, heads=heads)
            if (receiver, slot) not in arrived:
                text = (
                    f"slot {slot} of receiver {receiver} never gets head {head}: the plan has {len(plan)} pieces, "
                    f"and {sum(map(len, target))} are needed"
                )
                raise Verdict("failed", "other", text, case)
            if (other := arrived[receiver, slot]) != head:
                text = f"slot {slot} of receiver {receiver} gets head {other} instead of {head}"
                raise Verdict("failed", "other", text, case)
    count = max(Counter(sender for sender, *_ in plan).values())
    least = -(-len(plan) // senders)  # every head has equally many senders and equally many receivers
    if count > least:
        raise part.wrong("one-copy-sends-all", case, count=count, least=least)


def _deliver(part: Part, plan: Any, case: str, source: list[list[int]], target: list[list[int]]) -> dict[tuple[int, int], int]:
    """Return the head that arrives in each slot of each receiver. `source` and `target` have the heads of each rank."""
    arrived: dict[tuple[int, int], int] = {}
    written: dict[tuple[int, int], list[tuple[int, int]]] = {}  # the sender and the head of each piece
    for sender, slot, receiver, to_slot in plan:
        if not (0 <= sender < len(source) and 0 <= receiver < len(target)):
            text = f"the plan has sender {sender} and receiver {receiver}, of {len(source)} and {len(target)}"
            raise Verdict("failed", "no-such-rank", text, case)
        if not 0 <= slot < len(source[sender]):
            raise part.wrong("head-for-a-slot", case, sender=sender, last=len(source[sender]) - 1, slot=slot)
        if not 0 <= to_slot < len(target[receiver]):
            last = len(target[receiver]) - 1
            raise part.wrong("head-for-a-receivers-slot", case, receiver=receiver, last=last, slot=to_slot)
        arrived[receiver, to_slot] = source[sender][slot]
        written.setdefault((receiver, to_slot), []).append((sender, source[sender][slot]))
    for (receiver, slot), brought in sorted(written.items()):
        if len(brought) == 1:
            continue
        senders_of_a_head = Counter(head for _, head in set(brought))
        if max(senders_of_a_head.values()) > 1:
            raise part.wrong("every-copy-sends", case, receiver=receiver, slot=slot, count=len(brought))
        heads = ", ".join(str(head) for _, head in brought)
        text = f"slot {slot} of receiver {receiver} is written {len(brought)} times, with heads {heads}: a slot gets one piece"
        raise Verdict("failed", "other", text, case)
    return arrived
