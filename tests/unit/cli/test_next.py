"""The line `Next:` of every command suggests the same as `gpucourse next`, and leads through the whole course."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.walk import Solver, Walk
from gpucourse.cli.outcome import present_run
from gpucourse.cli.session import Session
from gpucourse.context import Context
from gpucourse.course.locate import find_course
from gpucourse.grading.checks import overall
from gpucourse.judge.client import JudgeAnswer
from gpucourse.learning.copies import copy_exercises
from gpucourse.learning.next_ import find_next_step
from gpucourse.model.fields import EXPRESSION
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import CheckResult, ExerciseVerdict
from gpucourse.runs.finish import deliver, judge, seal
from gpucourse.runs.follow import FollowedRun
from gpucourse.runs.mutations import keep_edited_files
from gpucourse.runs.parts import keep_started_files
from gpucourse.runs.resolve import RunRequest
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.files import write_record
from tests.learning import METRICS, Learning, Terminal, deploy

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
    """Record both exercises as done."""
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
    "doctor --module 1", "doctor", "init WORKSPACE", "destroy 1", "destroy --all", "report", "reset 1.1",
)  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_next_line_of_every_command_is_the_one_of_next(learning: Learning, state: str) -> None:
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


class Typist(Terminal):
    """A terminal at which the test answers the questions on the screen."""

    def __init__(self, solver: Solver, exercise: Exercise, capture: pytest.CaptureFixture[str]) -> None:
        super().__init__()
        self.solver, self.exercise, self.capture, self.shown = solver, exercise, capture, ""

    def readline(self, *_: object) -> str:  # type: ignore[override]  # a StringIO is text, whatever its base says
        self.shown += "".join(self.capture.readouterr())
        line = self.solver.reply(self.exercise, self.shown) + "\n"
        self.shown += line  # as a terminal echoes it
        return line


def make_metrics(exercise: Exercise) -> dict[str, Any]:
    """Return metrics with a number for each path that a question of the exercise reads."""
    metrics: dict[str, Any] = {"schema": 1, "device": "a CPU", "cuda": None}
    for source in (source for question in exercise.questions for source in question.reads):
        match = EXPRESSION.match(source)
        assert match is not None
        _, *folders, name = match["path"].split(".")
        place = metrics
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = [2.0] if match["reduce"] else 2.0
    return metrics


def pass_checks(exercise: Exercise, metrics: dict[str, Any], *_: object, mode: Any, run_id: str) -> ExerciseVerdict:
    """Return a verdict in which every check that needs no GPU passed, except the check that the metrics name."""

    def choose(name: str, level: str) -> Any:
        return "failed" if name == metrics.get("red") else "not_measured" if level == "gpu" else "passed"

    results = tuple(
        CheckResult(
            id=item.id, title=item.title, verdict=choose(item.id, item.evidence), evidence=item.evidence, observed="",
            expected="",
        )
        for item in exercise.checks
    )  # fmt: skip
    return ExerciseVerdict(exercise=exercise.id, run=run_id, mode=mode, verdict=overall(results), checks=results)


def play_run(session: Session, request: RunRequest, **_options: object) -> int:
    """Record a good run at once, or one in which only the predicted check failed, and show its result."""
    context = session.context
    module, exercise = context.catalog.exercise(request.exercise)
    record = RunRecord(
        id=runs.new_run(context.paths, exercise.id), exercise=exercise.id, module=module.id, stack=f"{module.id}-local",
        mode="local", launcher=exercise.launch.kind, state="succeeded", created=now_utc("milliseconds"), ended=now_utc(),
        nodes=["node0"], world_size=1, collected=True, expected_red=request.expected_red,
    )  # fmt: skip
    files = runs.files_of(context.paths, record)
    keep_started_files(context, exercise, record)
    keep_edited_files(context, record)
    for part in exercise.yours:
        if part.submit:
            files.batch(part.file.partition(".")[0]).parent.mkdir(exist_ok=True)
            files.batch(part.file.partition(".")[0]).write_text("submitted\n")
    write_record(files.metrics, make_metrics(exercise) | {"red": request.expected_red})
    write_record(files.plan, {"commands": []})
    verdict = judge(context, exercise, record)
    record.verdict = verdict.verdict if verdict else None
    runs.save(context.paths, record)
    deliver(context.paths, exercise, record)
    seal(files, record.mode)
    with session.console.watch() as live:
        pass
    return present_run(session, FollowedRun(record=record, verdict=verdict), live)


@pytest.mark.parametrize("modules", ["012", pytest.param("", marks=pytest.mark.slow, id="all")])
def test_next_leads_a_machine_through_the_course(
    learning: Learning, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], modules: str
) -> None:
    context = replace(learning.context, folders=find_course({}), environ={})
    copy_exercises(context)
    monkeypatch.setattr(Session, "_open", lambda _session, **_options: context)  # the course is read once
    monkeypatch.setattr(Context, "close", lambda _context: None)
    monkeypatch.setattr("gpucourse.cli.run._run_one", play_run)
    monkeypatch.setattr("gpucourse.cli.outcome._store_screen", lambda *_words: None)
    monkeypatch.setattr("gpucourse.grading.checks.evaluate", pass_checks)
    monkeypatch.setattr("gpucourse.judge.client.Judge.judge", lambda *_words, **_options: JudgeAnswer(word="passed"))
    monkeypatch.setattr("gpucourse.runs.parts._check_packages", lambda _part: None)
    solver = Solver(context)

    def type_command(line: str, exercise: Exercise | None) -> str:
        _, command, *words = line.split()
        if command == "deploy":
            lab = deploy(learning)
            lab.module, lab.stack, lab.created = words[0], f"{words[0]}-local", now_utc()
            deployments.save(context.paths, lab)
            return f"Next: {find_next_step(context, words[0]).command}"
        assert exercise is not None
        typist = Typist(solver, exercise, capfd)
        result = learning.types(command, *words, typing=typist if command == "answer" or "--expect-red" in words else None)
        return typist.shown + result.out + result.err

    walk = Walk(solver, type_command)
    assert walk.go(modules) == ""
    walked_modules = [module for module in context.catalog.modules if not modules or module.id in modules]
    exercises = [exercise.id for module in walked_modules for exercise in module.exercises]
    assert list(dict.fromkeys(exercise for exercise, _, _ in walk.steps)) == exercises
    document = learning.types("next", "--json").document
    assert (document["exercise"] is None, document["done"]) == (not modules, len(exercises))
