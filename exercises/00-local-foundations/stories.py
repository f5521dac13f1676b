"""The text that exercise 0.1 trains on: people who count things and give some away, written by a grammar with a fixed seed.

You will learn    what a training text is made of, and how much of it is random: no model can guess the dice
You will produce  stories.txt, the same to the last byte each time
Run it            python stories.py > stories.txt
Your part         change the words or the sentences, or put any plain text of your own into stories.txt
Reading           modules/00-local-foundations/lesson.md, "How low can the loss go?"
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence

SEED, STORIES = 0, 600
PEOPLE = {"Ada": "She", "Ben": "He", "Eva": "She", "Tom": "He"}
THINGS = ("apple", "boat", "lamp", "pear")
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven")


class Dice:
    """Dice that count their randomness: `nats` is the surprise of all rolls so far, ln(n) for one of n equal faces."""

    def __init__(self, seed: int) -> None:
        self.chance, self.nats = random.Random(seed), 0.0

    def one_of(self, faces: Sequence[str]) -> str:
        """Return one of the faces, all equally likely."""
        self.nats += math.log(len(faces))
        return self.chance.choice(faces)


def story(dice: Dice) -> str:
    """Return one story on one line. Dice choose the people, the things and the numbers; the last sentence follows from them."""
    giver = dice.one_of(list(PEOPLE))
    taker = dice.one_of([person for person in PEOPLE if person != giver])
    thing = dice.one_of(THINGS)
    has = NUMBERS.index(dice.one_of(NUMBERS[2:]))
    gives = NUMBERS.index(dice.one_of(NUMBERS[1:has]))
    return (
        f"{giver} has {many(has, thing)}. {PEOPLE[giver]} gives {many(gives, thing)} to {taker}. "
        f"Now {giver} has {NUMBERS[has - gives]}.\n"
    )


def many(count: int, thing: str) -> str:
    """Return the count in words, followed by the thing, in the plural if needed."""
    return f"{NUMBERS[count]} {thing}{'' if count == 1 else 's'}"


def write(seed: int = SEED, stories: int = STORIES) -> tuple[str, float]:
    """Return a text, and its randomness in nats per character: the loss of the best possible model."""
    dice = Dice(seed)
    text = "".join(story(dice) for _ in range(stories))
    return text, dice.nats / len(text)


if __name__ == "__main__":
    text, floor = write()
    sys.stdout.write(text)
    sys.stderr.write(f"{len(text):,} characters, {len(set(text))} different; {floor:.4f} nats per character are random\n")
