"""The rank-range question of exercise 0.3: you are one of several nodes; which ranks are yours? Each number makes a different
question."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

ANSWER = re.compile(r"\s*(\d{1,6})\s*(?:(?:-|\.\.|–|to)\s*(\d{1,6})\s*)?")


@dataclass(frozen=True)
class Question:
    """You are node `node` of `nodes`, counted from 0. Each node has `gpus` GPUs, and one process for each GPU."""

    node: int
    nodes: int
    gpus: int

    def __str__(self) -> str:
        last = self.nodes - 1
        return (
            f"you are node {self.node} of {self.nodes} (0 to {last}), with {self.gpus} GPUs each: which global ranks are yours?"
        )

    def holds(self, first: int, last: int) -> bool:
        """Return whether `first` to `last` are exactly this node's ranks. The ranks of earlier nodes come first."""
        return first == self.node * self.gpus and last == first + self.gpus - 1


def ask(number: int) -> Question:
    """Return the question with that number. The same number always makes the same question."""
    chance = random.Random(number)
    nodes = chance.randint(3, 12)
    return Question(node=chance.randint(1, nodes - 1), nodes=nodes, gpus=chance.choice((2, 4, 8)))


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
