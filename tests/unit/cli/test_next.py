"""The line `Next:` of every command names what `gpucourse next` names, wherever the learner is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from gpucourse.workspace import deployments
from tests.learning import METRICS, Learning, deploy

DRY = METRICS | {"wet": False}
RIGHT = ("why=Down.", "speedup=1.9", "busy=80", "where=b")


def record(learning: Learning, metrics: dict[str, Any] | None = None, **fields: Any) -> None:
    """Record a run of 1.1, and the lab that it ran on."""
    deploy(learning)
    learning.record(metrics=metrics, **fields)


def fail_after_success(learning: Learning) -> None:
    """Record a good run, and a newer one that failed a check."""
    record(learning)
    record(learning, metrics=DRY)


def answer(learning: Learning, *answers: str) -> None:
    """Record a good run of 1.1, and answer its questions."""
    record(learning)
    learning.types("answer", "1.1", *(word for item in answers for word in ("--set", item)), code=None)


def finish(learning: Learning) -> None:
    """Both exercises are done."""
    answer(learning, *RIGHT)
    learning.record("1.2")


def destroy(learning: Learning) -> None:
    """Forget the lab, and keep a good run."""
    record(learning)
    deployments.drop(learning.context.paths, "01-local")


STATES: dict[str, Callable[[Learning], object]] = {
    "empty": lambda learning: None,
    "deployed": deploy,
    "running": lambda learning: record(learning, state="running", collected=False),
    "ran": record,
    "failed": lambda learning: record(learning, state="failed"),
    "a check failed": lambda learning: record(learning, metrics=DRY),
    "a check failed after a good run": fail_after_success,
    "answered": lambda learning: answer(learning, *RIGHT),
    "done": finish,
    "destroyed": destroy,
}
COMMANDS = (
    "list", "show 1", "show 1.1", "show 1.2", "show 1.1 --run 1.1", "hint 1.1", "status", "runs", "check 1.1", "check --all",
    "check 1.1 --verbose", "answer 1.1 --set where=b", "answer 1.1 --set where=a", "grade", "quiz --list", "cost",
    "doctor --module 1", "doctor", "init WORKSPACE", "destroy 1", "destroy --all", "report", "reset 1.2",
)  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_next_of_every_command_is_that_of_next(learning: Learning, state: str) -> None:
    STATES[state](learning)
    step_count = 0
    for command in COMMANDS:
        if command.startswith("destroy") and deployments.readable(learning.context.paths)[0]:
            continue  # the record of a lab alone; a lab that is there is destroyed in tests/system
        result = learning.types(*command.replace("WORKSPACE", str(learning.workspace)).split(), code=None)
        steps = set(re.findall(r"Next: (.*)", result.out + result.err)) - {"gpucourse next"}
        if steps:  # `next` is asked afterwards: a command may change where the learner is
            assert steps == {learning.types("next", "--json").document["command"]}, f"{command} names another step than next"
            step_count += 1
    assert step_count >= 3
