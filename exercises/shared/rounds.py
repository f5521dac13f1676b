"""A collective as data: rounds of messages. Execute them on virtual ranks, count them, and compute their time.

    rounds = [[Message(0, 1, 0, 100, True)], [Message(1, 0, 0, 100, False)]]  # rank 0 sends to 1, which sends the sum back
    execute(rounds, [[1] * 100, [10] * 100])                                  # both ranks have 11 a hundred times
    clock(rounds, 1, Link(3e-6, 4 / 300e9), Link(10e-6, 4 / 50e9))            # seconds

All messages of a round are sent at the same time, with the values from before the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

Number = int | float | Fraction
MAX_MESSAGES = 200_000  # more than the ring of 256 ranks has


class Message(NamedTuple):
    """The numbers from `first` to `last` - 1 go from rank `source` to rank `target`, which adds them to its own or replaces its
    own."""

    source: int
    target: int
    first: int
    last: int
    add: bool


Rounds = list[list[Message]]


class Link(NamedTuple):
    """The time of a message of n numbers is `latency + n * per_number`, in the unit of the two, such as seconds."""

    latency: Number
    per_number: Number


def check(rounds: object, ranks: int, numbers: int) -> Rounds:
    """Return the rounds as `Message`s if they are rounds for `ranks` ranks with `numbers` numbers each.

    Raise TypeError or ValueError, with the round and the message, if they are not: a wrong type, a rank or a number that does
    not exist, a message of a rank to itself, or more than MAX_MESSAGES messages.
    """
    if not isinstance(rounds, (list, tuple)):
        raise TypeError(f"rounds are a list of lists of Message, not {type(rounds).__name__}")
    total, checked = 0, []
    for place, messages in enumerate(rounds):
        if not isinstance(messages, (list, tuple)):
            raise TypeError(f"round {place} is a list of Message, not {type(messages).__name__}")
        total += len(messages)
        if total > MAX_MESSAGES:
            raise ValueError(f"more than {MAX_MESSAGES:,} messages up to round {place}")
        checked.append([_check(message, f"round {place}", ranks, numbers) for message in messages])
    return checked


def _check(message: object, place: str, ranks: int, numbers: int) -> Message:
    if not isinstance(message, tuple) or len(message) != len(Message._fields):
        raise TypeError(f"{place}: {message!r:.60} is not a Message(source, target, first, last, add)")
    source, target, first, last, add = message
    if not all(type(value) is int for value in (source, target, first, last)) or type(add) is not bool:
        raise TypeError(f"{place}: {message!r:.90} needs four whole numbers and True or False")
    if not (0 <= source < ranks and 0 <= target < ranks):
        raise ValueError(f"{place}: {message!r:.90} is between ranks that do not exist: there are {ranks}")
    if source == target:
        raise ValueError(f"{place}: {message!r:.90} goes from a rank to itself")
    if not 0 <= first <= last <= numbers:
        raise ValueError(f"{place}: {message!r:.90} has numbers that do not exist: there are {numbers}")
    return Message(source, target, first, last, add)


def execute(rounds: Rounds, values: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the numbers of every rank after the rounds. `values[rank]` are its numbers before."""
    data = [list(row) for row in values]
    for messages in rounds:
        sent = [data[message.source][message.first : message.last] for message in messages]
        for (_, target, first, last, add), numbers in zip(messages, sent, strict=True):
            row = data[target]
            row[first:last] = [x + y for x, y in zip(row[first:last], numbers, strict=True)] if add else numbers
    return data


class Count(NamedTuple):
    """Counts of a collective: its `rounds`, and for each rank how many `messages` and `numbers` it sends."""

    rounds: int
    messages: list[int]
    numbers: list[int]


def count(rounds: Rounds, ranks: int) -> Count:
    """Return the counts of these rounds on `ranks` ranks."""
    messages, numbers = [0] * ranks, [0] * ranks
    for sent in rounds:
        for message in sent:
            messages[message.source] += 1
            numbers[message.source] += message.last - message.first
    return Count(len(rounds), messages, numbers)


def count_crossing(rounds: Rounds, per_node: int) -> int:
    """Return how many numbers go from one node to another, if each node has `per_node` ranks in order."""
    return sum(
        message.last - message.first
        for messages in rounds
        for message in messages
        if message.source // per_node != message.target // per_node
    )


def clock(rounds: Rounds, per_node: int, inside: Link, between: Link, *, shared_card: bool = False) -> Number:
    """Return the time of the rounds if each node has `per_node` ranks in order, in the unit of the links.

    Messages inside a node use the link `inside`, the others `between`. Each rank has one port to send and one to receive, and
    its messages of a round pass one after the other. With `shared_card`, the messages that leave or enter a node also pass one
    port of that node. A round lasts as long as its fullest port, plus its largest latency. Switches are not modelled.

    The time is exact if the links have `fractions.Fraction`s.
    """
    total: Number = 0
    for messages in rounds:
        load: dict[tuple[str, int], Number] = {}
        latency: Number = 0
        for source, target, first, last, _ in messages:
            crosses = source // per_node != target // per_node
            link = between if crosses else inside
            latency = max(latency, link.latency)
            ports = [("out", source), ("in", target)]
            if crosses and shared_card:
                ports += [("card out", source // per_node), ("card in", target // per_node)]
            for port in ports:
                load[port] = load.get(port, 0) + (last - first) * link.per_number
        total += latency + max(load.values(), default=0)
    return total
