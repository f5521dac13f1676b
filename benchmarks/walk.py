"""Walk the whole course by typing only the commands that Next names: `python -m benchmarks walk`, or
`python -m benchmarks walk 0 3` for some modules.

The program writes each part from the course's solution, answers questions from the answer keys, and prints each step. The walk
fails if a step comes twice.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from benchmarks.lab import GPUCOURSE, Lab, lab
from gpucourse.context import Context
from gpucourse.course.locate import find_course
from gpucourse.course.part_files import list_solutions
from gpucourse.grading.answers import read_ends
from gpucourse.learning.evidence import find_answered_run, find_newest_candidate
from gpucourse.learning.next_ import NextStep, find_next_step
from gpucourse.model.manifest import Exercise
from gpucourse.model.questions import Question
from gpucourse.runs.results import material
from gpucourse.workspace.locate import open_workspace

LAST = "gpucourse grade"
PROMPT = re.compile(r"(?:^|\n)([^\n]*)> $")
SHELL = re.compile(r"@\S*node\d[^\n]*[$#] $")  # the prompt of a shell on a node
QUESTION = re.compile(r"^\d+ of \d+ · (?:\S+\.\d+ )?([\w-]+)", re.MULTILINE)
COMMAND_LIMIT_S = 900.0


@dataclass
class Solver:
    """A solver that knows the solutions: it writes parts into files, and types answers at prompts."""

    context: Context
    mutation: Question | None = None

    def prepare(self, step: NextStep) -> None:
        """Do what the step requires besides its command: write the part, or make the edit of a mutation."""
        if step.exercise is None:
            return
        _, exercise = self.context.catalog.exercise(step.exercise.id)
        copies, course = self.context.paths.exercises, self.context.folders.exercises
        if step.command == exercise.mutation_command:
            mutations = (question for question in exercise.questions if question.kind == "mutation")
            self.mutation = next(question for question in mutations if question.text.rstrip(".") in step.what)
            place = self.context.catalog.sources(exercise)[str(self.mutation.edit)]
            text = (course / place).read_text()
            (copies / place).write_text(text.replace(str(self.mutation.was), str(self.mutation.becomes)))
            return
        for part in exercise.yours:
            if part.file in step.what and (step.command.startswith("gpucourse try") or not part.judge):
                place = self.context.catalog.part_places(exercise)[part.id]
                shutil.copyfile(list_solutions(course / place)[0], copies / place)

    def reply(self, exercise: Exercise, screen: str) -> str:
        """Return the line to type at the prompt that ends the screen; it is empty for a prompt that needs no answer."""
        prompt = PROMPT.search(screen)
        if prompt is None:
            return "exit" if "python session.py" in screen else "OMP_NUM_THREADS=1 python session.py"  # a shell on a node
        if prompt[1] == "check":
            return str(self.mutation.check) if self.mutation else ""
        if "yes, partly, no" in prompt[1]:
            return "yes"
        names = [name for name in QUESTION.findall(screen) if any(item.id == name for item in exercise.questions)]
        return self.answer(exercise, next(item for item in exercise.questions if item.id == names[-1])) if names else ""

    def answer(self, exercise: Exercise, question: Question) -> str:
        """Return the right answer to a question, or 1 if only a GPU can give the number."""
        if question.kind == "choice":
            return str(question.key)
        if question.kind == "text":
            return str(question.look_for).replace("\n", " ")
        if question.evidence == "gpu":
            return "1"
        paths = self.context.paths
        record = find_answered_run(paths, exercise) or find_newest_candidate(paths, exercise)
        return repr(sum(read_ends(question, material(paths, record) if record else None)) / 2)


@dataclass
class Walk:
    """A walk through the course, with its steps so far. `type_command` types a command for an exercise and returns what the
    screen shows.
    """

    solver: Solver
    type_command: Callable[[str, Exercise | None], str]
    report: Callable[[str], None] = lambda _text: None
    steps: list[tuple[str, str, str]] = field(default_factory=list)

    def go(self, modules: Collection[str] = ()) -> str:
        """Do each step until the course is done, or the named modules. Return an empty text, or why the walk ended early."""
        step, screen = find_next_step(self.solver.context), ""
        while step.exercise is not None and (not modules or step.exercise.id.partition(".")[0] in modules):
            key = (step.exercise.id, step.what, step.command)
            self.report(f"{step.exercise.id}  {step.command}\n      {step.what}")
            if key in self.steps:
                return f"{step.command}, in {step.exercise.id}, came twice: {step.what}\n{screen}"
            self.steps.append(key)
            self.solver.prepare(step)
            screen = self.type_command(step.command, step.exercise)
            following = find_next_step(self.solver.context)
            command = find_next_command(screen)
            if not command:
                return f"{step.command} showed no Next:\n{screen}"
            if command != following.command:
                return f"{step.command} showed Next: {command}, but next shows {following.command}"
            step = following
        return "" if step.exercise is not None or step.command.startswith(LAST) else f"the last step is {step.command}"


def find_next_command(screen: str) -> str:
    """Return the command of the last line `Next:` of a screen, or an empty text."""
    lines = [line.strip().removeprefix("Next: ") for line in screen.splitlines() if line.strip().startswith("Next: ")]
    return lines[-1] if lines else ""


def type_at_terminal(bench_lab: Lab, line: str, reply: Callable[[str], str]) -> str:
    """Type a command at a terminal, answer its prompts, and return all that it showed. Raises TimeoutError."""
    master, slave = pty.openpty()
    environ = {**bench_lab.environ, "TERM": "dumb", "COLUMNS": "200", "HOME": str(bench_lab.root.parent)}
    words = [GPUCOURSE, *line.split()[1:]]
    process = subprocess.Popen(words, env=environ, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    shown, answered, deadline = "", 0, time.monotonic() + COMMAND_LIMIT_S
    try:
        while True:
            ready, _, _ = select.select([master], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"{line} did not end")
            try:
                data = os.read(master, 1 << 16)
            except OSError:  # the last program has left the terminal
                break
            shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
            if not data:
                break
            if PROMPT.search(shown, answered) or SHELL.search(shown, answered):
                os.write(master, (reply(shown) + "\n").encode())
                answered = len(shown)
    except BaseException:
        process.terminate()
        raise
    finally:
        process.wait()
        os.close(master)
    return shown


def walk(modules: Collection[str]) -> int:
    """Walk the course, or some modules, on simulated nodes. Return 0 if it arrived, 1 if not, and 2 for an unknown module."""
    with lab() as bench_lab:
        bench_lab.type("init", str(bench_lab.root))
        context = Context(workspace=open_workspace(bench_lab.root), folders=find_course({}), environ=os.environ)
        if unknown := set(modules) - set(context.catalog.module_ids):
            print(f"there is no module {', '.join(sorted(unknown))}", file=sys.stderr)
            return 2
        solver = Solver(context)

        def type_command(line: str, exercise: Exercise | None) -> str:
            return type_at_terminal(bench_lab, line, lambda screen: solver.reply(exercise, screen) if exercise else "")

        for module in modules or [""]:
            if module:
                bench_lab.type("deploy", module)
            problem = Walk(solver, type_command, lambda text: print(text, flush=True)).go({module} if module else ())
            if problem:
                print(problem, file=sys.stderr)
                return 1
        print("arrived", flush=True)
    return 0
