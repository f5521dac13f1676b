"""The prompts of a made-up service, built from seven fields in any order, and how much of them a prefix cache finds.

You will learn    what the order of a prompt's fields does to the cache
You will produce  nothing directly: prefix_cache.py and the judge of my_template.yaml use it
Run it            python prefix_cache.py
Your part         my_template.yaml
Reading           modules/08-inference-engines/lesson-5-prefixes.md
"""

from __future__ import annotations

import functools
import itertools
import random
from bisect import bisect, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixes import count_shared

FIELDS = ("documents", "history", "request_id", "system", "time", "tools", "user")
NEW_FIELDS = ("time", "request_id")  # new in each request
LENGTHS = {"documents": 400, "request_id": 12, "system": 240, "time": 8, "tools": 320, "user": 40}  # tokens; history grows
ANSWER, PAGE = 80, 16
APPLICATIONS, TOPICS, CONVERSATIONS, TURNS = 3, 2, 7, 3
Prompt = Mapping[str, str]  # the text of each field, a letter for each token


@dataclass
class TemplateFile:
    """The content of my_template.yaml: the order, or None if a field is missing, and the faults, one sentence each."""

    order: list[str] | None = None
    faults: list[str] = field(default_factory=list)


def read_template(document: Any) -> TemplateFile:
    """Return the order of the fields in a YAML file. Fields may be missing; unknown or repeated fields are faults."""
    file = TemplateFile()
    if not isinstance(document, Mapping) or list(document) != ["order"]:
        file.faults.append("it has one key, order, with a list of the seven fields")
        return file
    entries = document["order"] if document["order"] is not None else []
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        file.faults.append("order: write a list, one line with a dash for each field")
        return file
    names = [entry for entry in entries if entry is not None]
    file.faults += [
        f"order: there is no field {name}; the fields are {', '.join(FIELDS)}" for name in names if name not in FIELDS
    ]
    file.faults += [f"order: {name} is in the list {names.count(name)} times" for name in FIELDS if names.count(name) > 1]
    if not file.faults and len(names) == len(FIELDS):
        file.order = list(names)
    return file


def draw(name: str, count: int) -> str:
    """Return `count` random tokens, which depend only on a name."""
    chance = random.Random(name)
    return "".join(chr(0x1000 + chance.randrange(5000)) for _ in range(count))


@functools.cache
def make_prompts() -> tuple[Prompt, ...]:
    """Return the prompts of a few conversations, whose turns alternate.

    All applications have the same tools, each has its system text, and two sets of documents. A conversation belongs to one
    application and one set of documents. `time` and `request_id` are different in each request.
    """
    chance = random.Random(1)
    talks = [(number % APPLICATIONS, chance.randrange(TOPICS)) for number in range(CONVERSATIONS)]
    histories, prompts = [""] * CONVERSATIONS, []
    turns = [talk for talk in range(CONVERSATIONS) for _ in range(TURNS)]
    chance.shuffle(turns)
    for number, talk in enumerate(turns):
        application, topic = talks[talk]
        names = {
            "tools": "tools", "system": f"system {application}", "documents": f"documents {application} {topic}",
            "user": f"user {number}", "time": f"time {number}", "request_id": f"request {number}",
        }  # fmt: skip
        prompt = {name: draw(text, LENGTHS[name]) for name, text in names.items()} | {"history": histories[talk]}
        prompts.append(prompt)
        histories[talk] += prompt["user"] + draw(f"answer {number}", ANSWER)
    return tuple(prompts)


def render(prompt: Prompt, order: Sequence[str]) -> str:
    """Return the text of a prompt with its fields in this order."""
    return "".join(prompt[name] for name in order)


def measure_found(order: Sequence[str]) -> float:
    """Return the percentage of tokens that are found in whole pages of earlier prompts, if no page is given up."""
    texts: list[str] = []
    shared_tokens = total = 0
    for prompt in make_prompts():
        text = render(prompt, order)
        place = bisect(texts, text)
        shared = max((count_shared(text, other) for other in texts[max(0, place - 1) : place + 1]), default=0)
        shared_tokens += min(shared, len(text) - 1) // PAGE * PAGE
        total += len(text)
        insort(texts, text)
    return 100 * shared_tokens / total


@functools.cache
def find_best() -> float:
    """Return the largest percentage of all orders of the seven fields.

    Nothing after a field that is new in each request can be found. One of the best orders therefore has these fields last, and
    only the orders of the others are measured.
    """
    others = [name for name in FIELDS if name not in NEW_FIELDS]
    return max(measure_found((*order, *NEW_FIELDS)) for order in itertools.permutations(others))
