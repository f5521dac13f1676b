"""The batch file that a learner writes as a part of an exercise: submitted unchanged, once its judge finds it right."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.errors import CheckFailed
from gpucourse.launch.planning import WrittenBatch
from gpucourse.model.event import Note
from gpucourse.model.manifest import Exercise, LearnerPart
from gpucourse.model.slurm import SLURM
from gpucourse.outside.slurm_options import read_file
from gpucourse.runs import parts
from gpucourse.runs.prepare import RunRequest


def find_written_batch(context: Context, exercise: Exercise, run_request: RunRequest) -> WrittenBatch | None:
    """The learner's batch file for this run; None if the course's own is submitted: the exercise has no such part, the part
    is still open, or another script or launcher was typed.

    Raises CheckFailed, with the reason, where the file is wrong: nothing is submitted then. Raises MissingError.
    """
    part = next((part for part in exercise.yours if part.submit), None)
    by_slurm = (run_request.launcher or exercise.launch.kind) in SLURM
    if part is None or run_request.script is not None or not by_slurm:
        return None
    file = parts.list_part_files(context, exercise)[part.id]
    result = parts.judge_part(context, exercise, part, file)
    if result.verdict == "open":
        return None
    if result.verdict != "passed":
        raise CheckFailed(
            f"{part.file} was not submitted: {result.says}",
            hint=f"edit {file}, then gpucourse try {exercise.id}; gpucourse hint {exercise.id}",
        )
    array = exercise.launch.slurm.array if exercise.launch.slurm else None
    if array in run_request.settings:
        told = f"--set {array} was typed, so the course's own file is submitted: {part.file} has values of its own"
        context.watch(Note(text=told, level="warning"))
        return None
    context.watch(Note(text=f"{part.file} is right, and is submitted as it is"))
    return _read(part, file.read_text(encoding="utf-8"))


def _read(part: LearnerPart, text: str) -> WrittenBatch:
    return WrittenBatch(name=part.file.rpartition("/")[2].rpartition(".")[0], text=text, tasks=len(read_file(text).array[0]))
