"""Prove a cause before the learner sees it: the solution with the same error must produce the same output on the same case.

A judge recognises a way by its effects, but another error may have the same effects. So a `Way` with `seen` is only a
suspicion. `settle` applies the change of the way to the solution, and judges the result on the same case. The learner sees the
cause if this gives the same verdict and output as the learner's file, or if the two files are identical. Otherwise, the learner
sees only what was observed.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gpucourse.judge.cases import is_list, plain

MAX_ITEMS = 200  # items of each list in a compared output; a longer list is sampled evenly
TOLERANCE, NEAR_ZERO = 1e-4, 1e-6  # relative, and absolute
Answer = dict[str, Any]


class Suspicion(msgspec.Struct, frozen=True, kw_only=True):
    """The additional fields of a verdict on a suspected way: the `change` to the solution, the observation `seen`, and the
    part's `output`."""

    change: tuple[str, str]
    seen: str
    output: Any


def settle(request: Mapping[str, Any], answer: Answer, judge: Callable[[Answer], Answer | None]) -> Answer | None:
    """Return the answer with its cause if that is proved, otherwise with the observation. Return None if the client exits.

    `judge` is a function that judges a request.
    """
    fields = answer.pop("suspicion", None)
    if fields is None:
        return answer
    try:
        suspicion = msgspec.convert(fields, Suspicion)
    except msgspec.ValidationError:  # the part's process wrote it
        return {**answer, "way": "other"}
    unproved = {**answer, "way": "other", "says": suspicion.seen}
    solution_file = _find_solution(request)
    if not solution_file.is_file():
        return unproved
    planted_text = solution_file.read_text(encoding="utf-8").replace(*suspicion.change)
    learner_file = Path(request["file"])
    if learner_file.is_file() and learner_file.read_bytes() == planted_text.encode():
        return answer  # there is nothing to compare
    with tempfile.TemporaryDirectory(prefix="gpucourse-way-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / Path(request["file"]).name
        file.write_text(planted_text, encoding="utf-8")
        planted = judge({**request, "file": str(file)})
    if planted is None:
        return None
    seconds = round(answer["seconds"] + planted["seconds"], 3)
    same_verdict = all(planted.get(key) == answer.get(key) for key in ("word", "way", "case"))
    proved = same_verdict and is_alike(suspicion.output, planted.get("suspicion", {}).get("output"))
    return {**(answer if proved else unproved), "seconds": seconds}


def _find_solution(request: Mapping[str, Any]) -> Path:
    """Return the path of the course's solution for the judged file, which is next to the folder of judges."""
    return Path(request["judge"]).parent.parent / "solutions" / Path(request["file"]).name


def sample(value: Any) -> Any:
    """Return an output in a form that JSON can store: tensors as lists, and long lists as their length and an even sample of
    items."""
    value = plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): sample(item) for key, item in value.items()}
    if is_list(value):
        step = -(-len(value) // MAX_ITEMS) or 1
        return [len(value), *map(sample, value[::step])] if step > 1 else [sample(item) for item in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)


def is_alike(output: Any, expected: Any) -> bool:
    """Return whether two samples show the same output. Numbers only need to be close, because another order of summing changes
    them."""
    if isinstance(output, dict) and isinstance(expected, dict):
        return output.keys() == expected.keys() and all(is_alike(output[key], expected[key]) for key in output)
    if isinstance(output, list) and isinstance(expected, list):
        return len(output) == len(expected) and all(map(is_alike, output, expected))
    numbers = all(isinstance(value, (int, float)) for value in (output, expected))
    return math.isclose(output, expected, rel_tol=TOLERANCE, abs_tol=NEAR_ZERO) if numbers else output == expected
