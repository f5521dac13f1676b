"""The rank-range question of exercise 0.3: which ranks are on a node, if the nodes have different numbers of free GPUs? Each
number makes a different question."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

ANSWER = re.compile(r"\s*(\d{1,6})\s*(?:(?:-|\.\.|–|to)\s*(\d{1,6})\s*)?")


@dataclass(frozen=True)
class Question:
    """The question: which ranks are on node `node`? `free_gpus[k]` is the number of free GPUs of node k. The ranks form groups
    of `group_size`, each on one node. `first` and `last` are the answer."""

    node: int
    free_gpus: tuple[int, ...]
    group_size: int
    first: int
    last: int

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.free_gpus[:-1])) + f" and {self.free_gpus[-1]}"
        return (
            f"nodes 0 to {len(self.free_gpus) - 1} have {numbers} free GPUs, for groups of {self.group_size} processes, each "
            f"on one node: which global ranks are on node {self.node}?"
        )

    def holds(self, first: int, last: int) -> bool:
        """Return whether `first` to `last` are exactly this node's ranks."""
        return (first, last) == (self.first, self.last)


def ask(number: int) -> Question:
    """Return the question with that number. The same number always makes the same question."""
    chance = random.Random(number)
    group_size, node_count = chance.choice((2, 3, 4)), chance.randint(4, 7)
    node = chance.randint(2, node_count - 1)
    free_gpus, first, last = [], 0, 0
    for place in range(node_count):
        ranks = group_size * chance.randint(int(place == node), 7 // group_size)
        free_gpus.append(ranks + chance.randint(int(place == 0), group_size - 1))  # node 0 has more than whole groups
        first += ranks if place < node else 0
        last += ranks if place <= node else 0
    return Question(node, tuple(free_gpus), group_size, first, last - 1)


def read(answer: str) -> tuple[int, int]:
    """Return the first and last rank of an answer such as 40-47. Raises ValueError if it is not a range."""
    match = ANSWER.fullmatch(answer)
    if not match:
        raise ValueError(f"{answer!r} is not a range of ranks: write the first and the last, such as 40-47")
    first = int(match[1])
    return first, int(match[2]) if match[2] else first


def judge(number: int, answer: str) -> dict[str, object]:
    """Return the question, the answer, and whether it is right; `right` is None without an answer."""
    question = ask(number)
    right = question.holds(*read(answer)) if answer.strip() else None
    return {"number": number, "question": str(question), "answer": answer.strip() or None, "right": right}
