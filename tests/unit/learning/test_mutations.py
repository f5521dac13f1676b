"""A mutation: the learner predicts which check fails after an edit, and only the run after that edit counts."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.learning.evidence import gather
from gpucourse.model.record import RunRecord
from gpucourse.runs.mutations import keep_edited_files
from gpucourse.runs.resolve import RunRequest
from tests.learning import FOLDER, METRICS, Learning, deploy

QUESTION = """      - {id: dry, kind: mutation, text: Dry it., check: wet, edit: source.py, was: speedup, becomes: dry,
         explanation: No water.}
"""
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
    """Return a run after an edit, for which the learner predicted the check that fails."""
    return learning.record(metrics=metrics, expected_red=expected, edited=list(files))


def judge(learning: Learning) -> tuple[str, float | None]:
    evidence = gather(learning.open_context(), learning.context.catalog.exercise("1.1")[1], thorough=False)
    answer = next(answer for answer in evidence.answers if answer.id == "dry")
    return answer.verdict, answer.share


def test_judge_mutation_that_fails_the_named_check_alone_passes(learning: Learning) -> None:
    assert judge(learning) == ("open", None)
    run = mutate(learning, "wet", DRY)
    assert judge(learning) == ("passed", 1)
    learning.types("check", "1.1", "--run", run.id, code=None)
    assert "✓ failed as predicted" in learning.types("runs").out


@pytest.mark.parametrize(
    ("expected", "metrics", "files"),
    [
        ("flows", METRICS | {"springs": [{"litres": 0, "busy_percent": 1}]}, ("source.py",)),
        ("wet", DRY | {"springs": [{"litres": 0, "busy_percent": 1}]}, ("source.py",)),
        ("wet", METRICS, ("source.py",)),
    ],
)
def test_judge_mutation_with_another_result_counts_an_attempt(
    learning: Learning, expected: str, metrics: dict[str, Any], files: tuple[str, ...]
) -> None:
    mutate(learning, expected, metrics, files)
    assert judge(learning) == ("failed", 0)
    mutate(learning, "wet", DRY)
    assert judge(learning) == ("passed", 0.5)


def test_judge_mutation_is_final_after_two_wrong_predictions(learning: Learning) -> None:
    mutate(learning, "flows", DRY)
    mutate(learning, "deep", DRY)
    assert judge(learning) == ("failed", 0)
    learning.record()
    answers = learning.types("answer", "1.1", "--set", "busy=80", "--json", code=5).document["answers"]
    assert (answers[0]["said"], answers[0]["explanation"]) == ("wet would have failed; final, counts 0 %", "No water.")
    mutate(learning, "wet", DRY)
    assert judge(learning) == ("passed", 0), "too late"


@pytest.mark.parametrize("option", [[], ["--verbose"]])
def test_mutations_that_were_predicted_right_are_explained_by_show(learning: Learning, option: list[str]) -> None:
    wrong, right = mutate(learning, "flows", DRY), mutate(learning, "wet", DRY)
    assert "No water." not in learning.types("show", "1.1", "--run", wrong.id, *option).out
    assert learning.types("show", "1.1", "--run", right.id, *option).out.count("No water.") == 1


def test_judge_mutation_of_another_file_counts_no_attempt(learning: Learning) -> None:
    mutate(learning, "wet", DRY, ("helper.py",))
    assert judge(learning) == ("open", None)


def test_mutations_are_no_evidence_and_hand_in_nothing(learning: Learning) -> None:
    mutate(learning, "wet", METRICS)
    assert gather(learning.context, learning.context.catalog.exercise("1.1")[1], thorough=False).run is None
    assert not (learning.workspace / "deliverables/1.1/metrics.json").exists()
    good_run = learning.record()
    mutate(learning, "wet", DRY)
    assert gather(learning.context, learning.context.catalog.exercise("1.1")[1], thorough=False).run == good_run.id
    bundle = learning.root / "work.zip"
    learning.types("grade", "--bundle", str(bundle))
    assert learning.count_answers(bundle, "1.1") == [0.5]


COMMAND = "gpucourse run 1.1 --expect-red"


def test_mutations_as_answer_name_the_run(learning: Learning) -> None:
    learning.record()
    message = learning.types("answer", "1.1", "--set", "dry=wet", code=2).err
    assert "to answer it, edit source.py and run the exercise" in message
    assert COMMAND in message


def test_mutations_as_answer_at_a_terminal_name_the_run(learning: Learning) -> None:
    learning.record()
    output = learning.types("answer", "1.1", typing="It falls.\n").out
    assert f"Question 1 of 6 is answered by a run: {COMMAND}" in output
    assert "open, a run answers it" in output
    mutate(learning, "wet", DRY)
    output = learning.types("answer", "1.1", typing="").out
    assert "is answered by a run" not in output
    assert "Question 1 of 6 was answered by a run: dry" in output


def test_mutations_are_named_by_next_until_the_prediction_is_right(learning: Learning) -> None:
    deploy(learning)
    learning.record()
    answers = ("why=It falls.", "speedup=1.9", "busy=80", "where=b")
    output = learning.types("answer", "1.1", *(word for item in answers for word in ("--set", item))).out
    assert f"Next: {COMMAND}" in output
    mutate(learning, "flows", DRY)
    step = learning.types("next", "--json").document
    assert step["command"] == COMMAND, "a wrong prediction is no answer"
    assert step["what"].startswith(f"edit {learning.workspace / 'exercises'}/"), "the file comes first, the command last"
    mutate(learning, "wet", DRY)
    assert learning.types("next", "--json").document["command"] == "gpucourse run 1.2"


@pytest.mark.parametrize(("typing", "check"), [("7\n2\n", "flows"), ("wet\n", "wet")])
def test_mutations_make_run_ask_which_check_will_fail(
    learning: Learning, monkeypatch: pytest.MonkeyPatch, typing: str, check: str
) -> None:
    requests: list[RunRequest] = []
    monkeypatch.setattr("gpucourse.cli.run._run_one", lambda _session, request, **_options: requests.append(request))
    assert "there is no file 'other.py'" in learning.types("reset", "1.1", "--file", "other.py", code=2).err
    learning.types("init", str(learning.workspace))
    (learning.workspace / f"exercises/{FOLDER}/source.py").write_text("# dry\n")
    output = learning.types("run", "1.1", "--expect-red", typing=typing).out
    assert "2  flows  It flows" in output
    assert [request.expected_red for request in requests] == [check]
    message = learning.types("run", "1.1", "--expect-red", code=2).err
    assert "--expect-red needs the check that will fail" in message
    run = mutate(learning, "wet", DRY)
    keep_edited_files(learning.context, run)
    assert "source.py: put the line back" in learning.types("show", "1.1", "--run", run.id).out
    learning.types("reset", "1.1")
    assert "put the line back" not in learning.types("show", "1.1", "--run", run.id).out
