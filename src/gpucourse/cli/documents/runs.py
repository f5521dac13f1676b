"""The documents of `run`, `runs`, `show --run`, `cancel`, `break` and `compare`."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from gpucourse.judge.client import JudgeAnswer
from gpucourse.model.answer import PredictionResult
from gpucourse.model.plan import Batch
from gpucourse.model.record import GivenPrediction
from gpucourse.model.report import Grid
from gpucourse.model.sweep import Point
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs.run_module import ExerciseRun


class DiagnosisDocument(TypedDict):
    """A symptom that was recognised in a run: `next` is what to type, or what to change."""

    symptom: str
    title: str
    next: str
    ranks: list[int]
    nodes: list[str]


class RunDocument(TypedDict):
    """One run. `script` is the learner's own, null for the exercise's. `seconds` is from start to end. `failed_rank` is the
    rank to look at first, null if none failed. `environment` are the variables that were typed, `handed_on` the names of
    those whose values are not stored. `group_sizes` has the size of the process group that each rank made, where torch
    reported it; 0 where it made none."""

    id: str
    exercise: str
    script: str | None
    module: str
    stack: str
    mode: str
    launcher: str
    state: str
    verdict: str | None
    created: str
    started: str | None
    ended: str | None
    seconds: float | None
    nodes: list[str]
    world_size: int
    restarts: int
    parameters: dict[str, Any]
    environment: dict[str, str]
    handed_on: list[str]
    torchrun: str
    group_sizes: list[int]
    warnings: list[str]
    prediction: GivenPrediction | None
    failed_rank: int | None
    diagnoses: list[DiagnosisDocument]
    drill: bool
    profiled: bool
    collected: bool
    error: str | None


class ListedRunDocument(RunDocument):
    """A run in the list; `detail` says why its state may be outdated."""

    detail: str


class Runs(TypedDict):
    """`runs`, oldest first."""

    runs: list[ListedRunDocument]


class RunResultDocument(TypedDict):
    """`run` to its end, and `show --run`."""

    run: RunDocument
    verdict: ExerciseVerdict | None
    prediction: PredictionResult | None
    folder: str


class OneRun(TypedDict):
    """`run --detach`, `cancel`, `break`: the run; for a drill its folder, or the copy to repair and the faults to name."""

    run: RunDocument
    folder: NotRequired[str]
    copy: NotRequired[str]
    faults: NotRequired[dict[str, str]]


class CommandDocument(TypedDict):
    """What one node starts."""

    node: str
    argv: list[str]
    env: dict[str, str]
    ranks: list[int]


class UploadDocument(TypedDict):
    """A file that is uploaded: `name` on the node, `source` here."""

    name: str
    source: str


class PlanDocument(TypedDict):
    """What a run would do. `batch` is what goes to Slurm, null elsewhere. `handed_on` are the variables whose values are this
    computer's own."""

    exercise: str
    launcher: str
    mode: str
    script: str
    parameters: dict[str, Any]
    commands: list[CommandDocument]
    uploads: list[UploadDocument]
    handed_on: list[str]
    timeout_s: float
    batch: Batch | None


class Plan(TypedDict):
    """`run --dry-run`."""

    plan: PlanDocument


class SweepDocument(TypedDict):
    """A sweep and its runs."""

    id: str
    exercise: str
    parameter: str
    unit: str
    state: str
    points: list[Point]


class SweepOutput(TypedDict):
    """`run --sweep`."""

    sweep: SweepDocument
    folder: str
    files: list[str]


class ModuleRuns(TypedDict):
    """`run --all`."""

    steps: list[ExerciseRun]


class RepairDocument(TypedDict):
    """`break --repaired`: the run of the copy, its checks, and what the judge of the fault says."""

    run: RunDocument
    verdict: ExerciseVerdict | None
    judged: JudgeAnswer | None


class ComparisonDocument(TypedDict):
    """`compare`: `labels` names each run, by its id, as the tables do; `files` are the pictures and the page; `conclusion` says
    what the differences tell, and `repeat` is the command that shows how much of them is noise, or empty."""

    exercise: str
    title: str
    mode: str
    labels: dict[str, str]
    runs: list[RunDocument]
    grids: list[Grid]
    files: list[str]
    conclusion: str
    repeat: str
