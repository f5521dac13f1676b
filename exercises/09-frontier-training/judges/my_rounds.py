"""Judge my_rounds.py of 9.1 on virtual ranks: every sum, the messages of each round, and the bytes between nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "whole-vector": Way(
        "rank {rank} sends {sent:,} numbers for a tensor of {size:,}, but {limit:,} are enough: in each round exchange half of "
        "what you still have, which is 2(n-1)/n of all in the end",
        ("edges[passed[0]], edges[passed[1]], True", "0, numbers, True"),
        seen="rank {rank} sends {sent:,} numbers for a tensor of {size:,}, but {limit:,} are enough",
    ),
    "half-only": Way(
        "each number is right on one rank only: that is a reduce-scatter. Go back the same way, until every rank has all "
        "chunks",
        ("return halving + doubling[::-1]", "return halving"),
    ),
    "keeps-what-it-gives": Way(
        "number {element} of rank {rank} lacks the value of rank {peer}: of two partners, one keeps the lower half and "
        "gets the other's, and the other keeps the upper half",
        ("if rank >> bit & 1:", "if rank < 0:"),
        seen="number {element} of rank {rank} lacks the value of rank {peer} after all rounds",
    ),
    "added-again": Way(
        "number {element} of rank {rank} contains the value of rank {peer} {count} times: on the way back chunks are finished, "
        "so they replace what the rank has, and nothing is added",
        ("edges[kept[0]], edges[kept[1]], False", "edges[kept[0]], edges[kept[1]], True"),
        seen="number {element} of rank {rank} contains the value of rank {peer} {count} times",
    ),
    "replaced": Way(
        "number {element} of rank {rank} lacks the value of rank {peer}, and no message is added: on the way there, each rank "
        "adds what arrives to its own",
        ("edges[passed[0]], edges[passed[1]], True", "edges[passed[0]], edges[passed[1]], False"),
    ),
    "far-first": Way(
        "with {per_node} ranks on each of {nodes} nodes, {crossing:,} numbers cross the network, and {least:,} are "
        "enough: your first exchange is the largest, and rank {rank} has it with rank {peer} of another node. Begin with "
        "the nearest rank",
        (
            "for bit in range(ranks.bit_length() - 1):",
            "for bit in reversed(range(ranks.bit_length() - 1)):",
        ),
    ),
    "two-at-once": Way(
        "rank {rank} {does} {count} messages in round {round}: a rank has one port each way, so a round has room for one "
        "message in each direction",
        (
            "            there.append(Message(rank, rank ^ 1 << bit, edges[passed[0]], edges[passed[1]], True))\n",
            "            half = (edges[passed[0]] + edges[passed[1]]) // 2\n"
            "            there.append(Message(rank, rank ^ 1 << bit, edges[passed[0]], half, True))\n"
            "            there.append(Message(rank, rank ^ 1 << bit, half, edges[passed[1]], True))\n",
        ),
    ),
    "one-way-at-a-time": Way(
        "there are {count} rounds, but {limit} are enough: a rank can send and receive in the same round, and all ranks "
        "work at the same time",
        ("halving.append(there)", "halving += [there[::2], there[1::2]]"),
    ),
    "not-a-power": Way(
        "for {ranks} ranks you return rounds, and {effect}: raise ValueError unless the number of ranks is a power of two",
        ("if ranks < 1 or ranks & (ranks - 1):", "if ranks < 1:"),
    ),
    "end-forgotten": Way(
        "the last {count} of {size} numbers did not change: {size} does not divide by {ranks}, so some chunks must be longer",
        (
            "    edges = _cut(0, numbers, ranks)",
            "    edges = [numbers // ranks * part for part in range(ranks + 1)]",
        ),
    ),
    "all-over-the-network": Way(
        "with {per_node} ranks on each of {nodes} nodes, {crossing:,} numbers cross the network, and {least:,} are "
        "enough: after the first phase, a rank needs to send only its own chunk to other nodes",
        ("parts = _cut(chunks[owned], chunks[owned + 1], nodes)", "parts = _cut(0, numbers, nodes)"),
    ),
    "wrong-owner": Way(
        "rank {rank} sends number {element} to another node in round {round}, and it lacks the value of rank {peer} of its own "
        "node: after the ring inside a node, which chunk is finished on which rank?",
        ("owned = (gpu + 1) % per_node", "owned = gpu"),
        seen="rank {rank} sends number {element} to another node in round {round}, and it lacks the value of rank {peer} of "
        "its own node",
    ),
    "one-leader": Way(
        "only {used} of the {per_node} ranks of a node send to other nodes, and the others wait: let each rank take its "
        "own chunk over the network",
        (
            "    chunks = _cut(0, numbers, per_node)\n",
            "    if nodes > 1 and per_node > 1:\n"
            "        heads = [node * per_node for node in range(nodes)]\n"
            "        parts = _cut(0, numbers, nodes)\n"
            "        inside = [[Message(head + gpu, head, 0, numbers, True) for head in heads] for gpu in range(1, per_node)]\n"
            "        ring = [[Message(heads[node], heads[(node + 1) % nodes], parts[(node - step) % nodes],\n"
            "                         parts[(node - step) % nodes + 1], step < nodes - 1) for node in range(nodes)]\n"
            "                for step in range(2 * nodes - 2)]\n"
            "        back = [[Message(head, head + gpu, 0, numbers, False) for head in heads] for gpu in range(1, per_node)]\n"
            "        return inside + ring + back\n"
            "    chunks = _cut(0, numbers, per_node)\n",
        ),
    ),
    "inside-forgotten": Way(
        "each number is right on one rank of each node only: after the network, the ranks of a node must exchange their "
        "finished chunks",
        ("return summing + crossing + gathering", "return summing + crossing"),
        seen="each number is right on one rank of each node only",
    ),
}
BASE = 64  # in this base, a sum has one digit for each rank: how often the rank's value is in it
HALVING = ((2, 12), (4, 12), (8, 24), (1, 5), (4, 13), (8, 1001), (16, 50))
LEVELS = ((2, 2, 8), (2, 4, 24), (2, 4, 27), (4, 2, 21), (3, 2, 25), (2, 3, 25), (1, 4, 9), (4, 1, 9), (1, 1, 3))
NO_POWERS = (3, 6, 12)


class Trial(NamedTuple):
    """One call: its name, its rounds, and how many ranks, numbers and nodes it has. For halving, `nodes` is 0."""

    name: str
    rounds: Any
    ranks: int
    numbers: int
    nodes: int
    limit: int  # of rounds


def judge(part: Part) -> None:
    """Judge both functions: powers of two and other numbers, lengths that do not divide, one node and one rank per node."""
    halving, hierarchical = part.function("halving_doubling"), part.function("hierarchical")
    for ranks, numbers in HALVING:
        with part.trying({"ranks": ranks, "numbers": numbers}):
            name = f"halving_doubling({ranks}, {numbers})"
            rounds = _check(part.call(halving, ranks, numbers, case=name), ranks, numbers, name)
            _judge(part, Trial(name, rounds, ranks, numbers, 0, 2 * (ranks.bit_length() - 1)))
    for ranks in NO_POWERS:
        _judge_refusal(part, halving, ranks)
    for nodes, per_node, numbers in LEVELS:
        with part.trying({"nodes": nodes, "per_node": per_node, "numbers": numbers}):
            ranks, name = nodes * per_node, f"hierarchical({nodes}, {per_node}, {numbers})"
            rounds = _check(part.call(hierarchical, nodes, per_node, numbers, case=name), ranks, numbers, name)
            _judge(part, Trial(name, rounds, ranks, numbers, nodes, 2 * (nodes + per_node - 2)))
    part.note(f"right in {len(HALVING) + len(LEVELS)} cases of 1 to 16 ranks, with as few numbers between nodes as possible")


def _check(rounds: Any, ranks: int, numbers: int, name: str) -> Any:
    from rounds import check

    try:
        return check(rounds, ranks, numbers)
    except (TypeError, ValueError) as error:
        raise Verdict("failed", "not-rounds", str(error), name) from None


def _judge_refusal(part: Part, halving: Callable[..., Any], ranks: int) -> None:
    name = f"halving_doubling({ranks}, 24)"
    try:
        result = halving(ranks, 24)
    except ValueError:
        return
    except BaseException as error:  # noqa: BLE001  # the learner's code may raise anything
        raise part.make_verdict(error, name) from None
    try:
        parts = _count_parts(_check(result, ranks, 24, name), ranks, 24)
    except Verdict as verdict:
        raise part.wrong("not-a-power", name, ranks=ranks, effect=verdict.says) from None
    wrong = sum(counts != [1] * ranks for row in parts for counts in row)
    raise part.wrong("not-a-power", name, ranks=ranks, effect=f"{wrong} numbers are wrong after them")


def _judge(part: Part, trial: Trial) -> None:
    _judge_ports(part, trial, "sends")
    if trial.nodes < 2:
        _judge_ports(part, trial, "receives")
    _judge_sums(part, trial)
    per_node = trial.ranks // (trial.nodes or 1)
    if trial.nodes > 1:
        used = {message.source % per_node for messages in trial.rounds for message in messages if _crosses(message, per_node)}
        if len(used) < per_node:
            raise part.wrong("one-leader", trial.name, used=len(used), per_node=per_node)
    for size in [per_node] if trial.nodes else [1 << bit for bit in range(trial.ranks.bit_length())]:
        _judge_crossing(part, trial, size)
    _judge_bytes(part, trial)
    if len(trial.rounds) > trial.limit:
        raise part.wrong("one-way-at-a-time", trial.name, count=len(trial.rounds), limit=trial.limit)
    _judge_ports(part, trial, "receives")  # after the verdict on a leader, to which all others send


def _judge_ports(part: Part, trial: Trial, does: str) -> None:
    """Raise the verdict if a rank has two messages in one direction in the same round."""
    for number, messages in enumerate(trial.rounds):
        ranks = Counter(message.source if does == "sends" else message.target for message in messages)
        rank, count = max(ranks.items(), key=lambda pair: pair[1], default=(0, 0))
        if count > 1:
            raise part.wrong("two-at-once", trial.name, rank=rank, does=does, count=count, round=number)


def _crosses(message: Any, per_node: int) -> bool:
    return bool(message.source // per_node != message.target // per_node)


def _judge_crossing(part: Part, trial: Trial, per_node: int) -> None:
    from rounds import count_crossing

    nodes = trial.ranks // per_node
    crossing = count_crossing(trial.rounds, per_node)
    least = 2 * (nodes - 1) * trial.numbers
    if crossing <= least + (0 if trial.nodes else nodes * trial.ranks):  # halves of chunks may differ by one number
        return
    first = next(message for messages in trial.rounds for message in messages if _crosses(message, per_node))
    values = {
        "per_node": per_node,
        "nodes": nodes,
        "crossing": crossing,
        "least": least,
        "rank": first.source,
        "peer": first.target,
    }
    if not trial.nodes and all(_crosses(message, per_node) for message in trial.rounds[0]):
        sent = sum(message.last - message.first for message in trial.rounds[0])
        if sent < trial.numbers * trial.ranks * 3 // 4:
            raise part.wrong("far-first", trial.name, **values)
    if trial.nodes:
        raise part.wrong("all-over-the-network", trial.name, **values)
    _judge_bytes(part, trial)
    number = next(number for number, messages in enumerate(trial.rounds) if first in messages)
    text = (
        "with {per_node} ranks on each of {nodes} nodes, {crossing:,} numbers cross the network, but {least:,} are enough: "
        "round {round} is the first that crosses, and rank {rank} exchanges with rank {peer} in it"
    )
    raise Verdict("failed", "other", text.format_map(values | {"round": number}), trial.name)


def _judge_bytes(part: Part, trial: Trial) -> None:
    """Raise the verdict if a rank sends more than 2(n-1)/n of the numbers."""
    sent: Counter[int] = Counter()
    for messages in trial.rounds:
        for message in messages:
            sent[message.source] += message.last - message.first
    limit = 2 * (trial.ranks - 1) * -(-trial.numbers // trial.ranks)
    rank, most = max(sent.items(), key=lambda pair: pair[1], default=(0, 0))
    if most > limit:
        values = {"rank": rank, "sent": most, "size": trial.numbers, "limit": limit}
        raise part.wrong("whole-vector", trial.name, output=trial.rounds, **values)


def _count_parts(rounds: Any, ranks: int, numbers: int) -> list[list[list[int]]]:
    """Return [rank][number][source]: how often the value of rank `source` is in the number after all rounds."""
    from rounds import execute

    result = execute(rounds, [[BASE**rank] * numbers for rank in range(ranks)])
    return [[[value // BASE**rank % BASE for rank in range(ranks)] for value in row] for row in result]


def _judge_sums(part: Part, trial: Trial) -> None:
    """Raise the verdict if a number is not the sum over all ranks."""
    ranks, numbers = trial.ranks, trial.numbers
    parts = _count_parts(trial.rounds, ranks, numbers)
    full = [1] * ranks
    wrong = [(rank, element) for rank in range(ranks) for element in range(numbers) if parts[rank][element] != full]
    if not wrong:
        return
    for rank, element in wrong:
        for peer, count in enumerate(parts[rank][element]):
            if count > 1:
                raise part.wrong(
                    "added-again", trial.name, output=trial.rounds, element=element, rank=rank, peer=peer, count=count
                )
    _judge_pattern(part, trial, parts)
    rank, element = wrong[0]
    values = {"element": element, "rank": rank, "peer": parts[rank][element].index(0)}
    if not any(message.add for messages in trial.rounds for message in messages):
        raise part.wrong("replaced", trial.name, **values)
    if not trial.nodes:
        raise part.wrong("keeps-what-it-gives", trial.name, output=trial.rounds, **values)
    _judge_owners(part, trial, ranks // trial.nodes)
    text = "number {element} of rank {rank} lacks the value of rank {peer}".format_map(values)
    raise Verdict("failed", "other", text, trial.name)


def _judge_pattern(part: Part, trial: Trial, parts: list[list[list[int]]]) -> None:
    """Raise the verdict if the numbers that are right, or unchanged, form a pattern with a known cause."""
    ranks, numbers, rest = trial.ranks, trial.numbers, trial.numbers % trial.ranks
    untouched = [[int(rank == peer) for peer in range(ranks)] for rank in range(ranks)]
    unchanged = [element for element in range(numbers) if all(parts[rank][element] == untouched[rank] for rank in range(ranks))]
    if rest and unchanged == list(range(numbers - rest, numbers)):
        raise part.wrong("end-forgotten", trial.name, count=rest, size=numbers, ranks=ranks)
    right = [[rank for rank in range(ranks) if parts[rank][element] == [1] * ranks] for element in range(numbers)]
    per_node = ranks // (trial.nodes or 1)
    if trial.nodes > 1 and all([rank // per_node for rank in owners] == list(range(trial.nodes)) for owners in right):
        raise part.wrong("inside-forgotten", trial.name, output=trial.rounds)
    if all(len(owners) == 1 for owners in right):
        raise part.wrong("half-only", trial.name)


def _judge_owners(part: Part, trial: Trial, per_node: int) -> None:
    """Raise the verdict if a number leaves a node before all ranks of the node are in its sum."""
    for number, messages in enumerate(trial.rounds):
        crossing = [message for message in messages if _crosses(message, per_node) and message.last > message.first]
        if not crossing:
            continue
        parts = _count_parts(trial.rounds[:number], trial.ranks, trial.numbers)
        for message in crossing:
            node = message.source // per_node
            for element in range(message.first, message.last):
                counts = parts[message.source][element][node * per_node : (node + 1) * per_node]
                if 0 in counts:
                    peer = node * per_node + counts.index(0)
                    raise part.wrong(
                        "wrong-owner",
                        trial.name,
                        output=trial.rounds,
                        rank=message.source,
                        element=element,
                        round=number,
                        peer=peer,
                    )
        return
