"""A mutation: the learner says which check goes red after an edit, and only that run counts."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.learning.evidence import gather
from gpucourse.model.record import RunRecord
from tests.learning import FOLDER, METRICS, Learning, deploy

QUESTION = "      - {id: dry, kind: mutation, text: Dry it., check: wet, edit: source.py, explanation: No water.}\n"
DRY: dict[str, Any] = METRICS | {"wet": False}


@pytest.fixture
def learning(learning: Learning) -> Learning:
    """Return a learner whose exercise 1.1 asks for a mutation."""
    manifest = learning.course / f"modules/{FOLDER}/module.yaml"
    questions = "    questions:\n      - {id: why"
    manifest.write_text(manifest.read_text().replace(questions, f"    questions:\n{QUESTION}      - {{id: why"))
    learning.context = learning.open_context()
    return learning


def mutate(learning: Learning, expected: str, metrics: dict[str, Any], files: tuple[str, ...] = ("source.py",)) -> RunRecord:
    """Return a run after an edit, of which the learner said which check goes red."""
    return learning.record(metrics=metrics, expected_red=expected, edited=list(files))


def judge(learning: Learning) -> tuple[str, float | None]:
    evidence = gather(learning.open_context(), learning.context.catalog.exercise("1.1")[1], thorough=False)
    answer = next(answer for answer in evidence.answers if answer.id == "dry")
    return answer.verdict, answer.share


def test_mutation_that_fails_the_named_check_alone_passes(learning: Learning) -> None:
    assert judge(learning) == ("open", None)
    mutate(learning, "wet", DRY)
    assert judge(learning) == ("passed", 1)


@pytest.mark.parametrize(
    ("expected", "metrics", "files"),
    [
        ("flows", METRICS | {"springs": [{"litres": 0, "busy_percent": 1}]}, ("source.py",)),
        ("wet", DRY | {"springs": [{"litres": 0, "busy_percent": 1}]}, ("source.py",)),
        ("wet", METRICS, ("source.py",)),
    ],
)
def test_mutation_with_another_result_is_an_attempt(
    learning: Learning, expected: str, metrics: dict[str, Any], files: tuple[str, ...]
) -> None:
    mutate(learning, expected, metrics, files)
    assert judge(learning) == ("failed", 0)
    mutate(learning, "wet", DRY)
    assert judge(learning) == ("passed", 0.5)


def test_mutation_of_another_file_is_no_attempt(learning: Learning) -> None:
    mutate(learning, "wet", DRY, ("helper.py",))
    assert judge(learning) == ("open", None)


def test_mutated_run_is_no_evidence_and_hands_in_nothing(learning: Learning) -> None:
    mutate(learning, "wet", METRICS)
    assert gather(learning.context, learning.context.catalog.exercise("1.1")[1], thorough=False).run is None
    assert not (learning.workspace / "deliverables/1.1/metrics.json").exists()
    good_run = learning.record()
    mutate(learning, "wet", DRY)
    assert gather(learning.context, learning.context.catalog.exercise("1.1")[1], thorough=False).run == good_run.id
    bundle = learning.root / "work.zip"
    learning.types("grade", "--bundle", str(bundle))
    assert learning.count_answers(bundle, "1.1") == [0.5]


COMMAND = "gpucourse run 1.1 --expect-red CHECK"


def test_answer_of_a_mutation_names_the_run(learning: Learning) -> None:
    learning.record()
    message = learning.types("answer", "1.1", "--set", "dry=wet", code=2).err
    assert "to answer it, edit source.py and run the exercise" in message
    assert COMMAND in message


def test_answer_at_a_terminal_names_the_run_of_a_mutation(learning: Learning) -> None:
    learning.record()
    output = learning.types("answer", "1.1", typing="It falls.\n").out
    assert f"1 of 6 is answered by a run: {COMMAND}" in output
    assert f"dry is answered by a run: {COMMAND}" in output
    assert "Still open: speedup, busy, where, power." in output
    mutate(learning, "wet", DRY)
    assert "is answered by a run" not in learning.types("answer", "1.1", typing="").out


def test_next_names_the_run_when_a_mutation_alone_is_open(learning: Learning) -> None:
    deploy(learning)
    learning.record()
    document = learning.types("next", "--json").document
    assert (document["what"], document["command"]) == ("answer why, speedup, busy, where", "gpucourse answer 1.1")
    answers = ("why=It falls.", "speedup=1.9", "busy=80", "where=b")
    output = learning.types("answer", "1.1", *(word for item in answers for word in ("--set", item))).out
    assert f"Next: {COMMAND}" in output
    assert "Next: gpucourse answer 1.1" not in output
    document = learning.types("next", "--json").document
    assert document["command"] == COMMAND
    assert document["what"] == "Dry it. The checks of 1.1: wet, flows, deep"
    mutate(learning, "flows", DRY)
    assert learning.types("next", "--json").document["command"] == COMMAND, "a wrong prediction is no answer"
    mutate(learning, "wet", DRY)
    assert learning.types("next", "--json").document["command"] == "gpucourse run 1.2"
