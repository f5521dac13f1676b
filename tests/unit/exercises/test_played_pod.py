"""What a server would refuse of B.1's manifest is said before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.exercises.scripts import beside_the_script

FOLDER = Path(__file__).parents[3] / "exercises" / "B-ebpf-tracing"
played_pod = beside_the_script("B-ebpf-tracing", "played_pod")
SOLVED = (FOLDER / "solutions" / "my_pod.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("containerPort: 8000", 'containerPort: "8000"', "has to be a number"),
        ("shareProcessNamespace: true", "shareProcessNamespace: true\n  hostPID: true", "cannot both be true"),
        ("- name: tracer\n", "- name: other\n", "no container tracer"),
        ("spec:", "spec", "refused: line"),
    ],
)
def test_find_refusal_says_what_a_server_refuses(old: str, new: str, words: str) -> None:
    assert words in played_pod.find_refusal(SOLVED.replace(old, new, 1))


def test_find_refusal_is_none_for_the_solution_alone() -> None:
    assert played_pod.find_refusal(SOLVED) is None
    assert played_pod.find_refusal((FOLDER / "my_pod.yaml").read_text(encoding="utf-8")) is not None
