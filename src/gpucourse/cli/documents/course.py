"""The documents of the course: lists, lessons, answers, checks, points, reports; and that of an error."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from gpucourse.cli.documents.runs import RunDocument
from gpucourse.learning.rehearse import Rehearsal
from gpucourse.model.answer import AnswerResult
from gpucourse.model.quiz import Try
from gpucourse.model.score import QuizScore, Signs
from gpucourse.model.verdict import ExerciseVerdict, PartResult


class ErrorDocument(TypedDict):
    """What went wrong. `code` is a stable word, `hint` what to type next."""

    code: str
    what: str
    hint: str
    log: str | None
    exit_code: int
    traceback: NotRequired[str]


class FailureDocument(TypedDict):
    """Any command that could not do its work, if it had printed no document before."""

    error: ErrorDocument


class ListedExercise(TypedDict):
    """An exercise of the syllabus. `verdict` is that of its newest run."""

    id: str
    title: str
    minutes: int
    verdict: str | None
    signs: Signs | None


class ListedModule(TypedDict):
    """A module of the syllabus; without points where the course has no rubric that can be read."""

    id: str
    title: str
    hours: float
    points: float | None
    earned: float | None
    exercises: list[ListedExercise]


class Listing(TypedDict):
    """`list`. `broken` are manifests that cannot be read."""

    modules: list[ListedModule]
    points: float | None
    earned: float | None
    broken: list[str]


class ModuleExercise(TypedDict):
    """An exercise in a module's overview."""

    id: str
    title: str
    goal: str
    minutes: int


class ShownModule(TypedDict):
    """`show 3`: a module; `lesson` are the files of its lesson, in Markdown."""

    id: str
    title: str
    summary: str
    hours: float
    lesson: list[str]
    exercises: list[ModuleExercise]


class ParameterDocument(TypedDict):
    """A parameter of an exercise; `local` is its default on simulated nodes."""

    name: str
    type: str
    default: str | int | float | bool
    local: str | int | float | bool
    min: float | None
    max: float | None
    choices: list[str | int | float | bool]
    unit: str
    help: str


class ExerciseDocument(TypedDict):
    """An exercise as in its manifest."""

    id: str
    title: str
    goal: str
    minutes: int
    script: str
    launcher: str
    tasks: list[str]
    parameters: list[ParameterDocument]


class ShownExercise(ExerciseDocument):
    """`show 3.2`: an exercise, its answers and parts, the checks of the run that counts; `open` is what it still asks for."""

    module: str
    verdict: ExerciseVerdict | None
    answers: list[AnswerResult]
    parts: list[PartResult]
    signs: Signs
    open: list[str]


class NextDocument(TypedDict):
    """`next`: what to do, in words and as a command; `exercise` is null where all are done."""

    exercise: str | None
    signs: Signs | None
    what: str
    command: str


class Hint(TypedDict):
    """`hint`: a hint, its number, and how many there are."""

    exercise: str
    hint: int
    of: int
    text: str


class ResetDocument(TypedDict):
    """`reset`: each file that was put back, with the place of the learner's own version, null if there was none."""

    exercise: str
    files: dict[str, str | None]


class JudgedParts(TypedDict):
    """`try`: the learner's parts."""

    exercise: str
    parts: list[PartResult]


class Answers(TypedDict):
    """`answer`: every question with its answer; `run` is the one that numbers are compared with, if one was named."""

    exercise: str
    run: str | None
    answers: list[AnswerResult]


class SheetDocument(TypedDict):
    """`answer --template`: the file to fill in."""

    sheet: str


class RunCheck(TypedDict):
    """`check 3.2`: the run that was judged, by its id, and the verdict."""

    run: str
    verdict: ExerciseVerdict


class CheckedExercise(TypedDict):
    """An exercise checked again; `before` is its earlier verdict, `missing` are deliverables that do not exist."""

    exercise: str
    title: str
    verdict: ExerciseVerdict | None
    before: str | None
    missing: list[str]
    regressed: bool


class CheckedAll(TypedDict):
    """`check --all`."""

    exercises: list[CheckedExercise]


class DiagnosedRun(TypedDict):
    """`check --diagnosis` of a fault in a run."""

    run: RunDocument
    verdict: ExerciseVerdict


class CodeDiagnosisDocument(TypedDict):
    """A diagnosis of a fault in code: `hint` if it is wrong, the fault's title and explanation if it is right."""

    right: bool
    hint: str
    fault: str | None
    explanation: str | None
    copy: str


class DiagnosedCode(TypedDict):
    """`check --diagnosis` of a fault in code."""

    diagnosis: CodeDiagnosisDocument


class QuestionDocument(TypedDict):
    """A question of the quiz, without its key."""

    id: str
    lesson: str
    kind: str
    text: str
    unit: NotRequired[str]
    options: NotRequired[list[str]]


class QuizQuestions(TypedDict):
    """`quiz --list`."""

    title: str
    questions: list[QuestionDocument]


class QuizState(TypedDict):
    """`quiz`: the newest attempt, its answers, and the best score."""

    finished: bool
    right: int
    of: int
    best: QuizScore | None
    answers: list[AnswerResult]
    questions: list[QuestionDocument]
    tries: list[Try]


class ReportFiles(TypedDict):
    """`report`: the files, what is compared, and what is still missing."""

    files: list[str]
    subjects: list[str]
    missing: list[str]


class CourseReportFile(TypedDict):
    """`report --of course`: the page, and how many of the course's exercises it covers."""

    file: str
    exercises: int
    course_exercises: int


class TrustedFolders(TypedDict):
    """`trust`: the folders of others that may be used."""

    trusted: list[str]


class CheckedCourseDocument(TypedDict):
    """`dev check`: complaints about the course, and with --run its exercises as they ran."""

    modules: list[str]
    complaints: list[str]
    exercises: list[Rehearsal]


class CourseFilesDocument(TypedDict):
    """`dev new` and `dev schema`: the folder of the course, and the files that were written, relative to it."""

    folder: str
    files: list[str]
