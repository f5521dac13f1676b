"""Which command receives which lie of tests/lies.py.

All answers pass one gate: `remote.exchange` takes their bytes, `remote.jobs.answer` their exit code, `remote.answers.parse`
their JSON. So every form of an answer is told once, to `probe`, and so is each lie about a field that another question adds.
Frames and parcels have one reader each. What differs by verb is what becomes of the error, or of the run that was told of: each
verb hears one lie of each kind, those of EVERY_VERB, and the other lies are told to the verbs that ask the question in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.liar import Lie
from tests.lies import ANSWERS, ENDS, LIES

VERBS = {
    "machine": ("deploy",),
    "programs": ("deploy",),
    "belongings": ("deploy", "destroy"),
    "follow": ("run", "logs", "cancel", "destroy"),
    "state": ("runs", "cancel"),
    "cancel": ("cancel", "destroy"),
    "pack": ("run", "logs", "destroy"),
    "look": ("silent",),
}
"""Which verbs ask which question; all others are asked by `run`."""

EVERY_VERB = {f"{message} {name}" for message in ANSWERS for name in ENDS} | {
    "follow: an unknown kind",
    "follow: a log of escapes",
    "follow: silence",
    "follow: cut again and again",
    "follow: signs of life without end",
    "follow: a failure",
    "pack: no tar at all",
    "pack: a secret as the same and changed",
    "pack: silence",
    "pack: zeros without end",
    "pack: a failure with escapes",
}


def list_rows() -> Iterator[tuple[Lie, str]]:
    """Every lie with a verb that hears it."""
    turns = Counter[str]()
    for lie in LIES:
        verbs = VERBS.get(lie.message, ("run",))
        if lie.name in EVERY_VERB:
            yield from ((lie, verb) for verb in verbs)
        else:
            yield lie, verbs[turns[lie.message] % len(verbs)]
            turns[lie.message] += 1
