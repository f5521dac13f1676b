"""The learner's predictions for the runs of an exercise, and their credit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpucourse.errors import GpucourseError
from gpucourse.grading.answers import SECOND
from gpucourse.learning.attempts import JUDGED
from gpucourse.model.answer import AnswerResult, PredictionResult
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import RunRecord
from gpucourse.runs.results import read_prediction
from gpucourse.workspace import runs, seals
from gpucourse.workspace.paths import WorkspacePaths


@dataclass(frozen=True, kw_only=True)
class RunPrediction:
    """A prediction and its run. `blind` means that no earlier run with the same parameters had measured the value."""

    record: RunRecord
    result: PredictionResult
    blind: bool


def list_predictions(paths: WorkspacePaths, exercise: Exercise) -> list[RunPrediction]:
    """Return every prediction that can be compared with the measurement of its run, oldest first. Runs whose files were changed
    afterwards are left out."""
    return list(_iterate_predictions(paths, exercise)) if exercise.predict else []


def judge_predictions(paths: WorkspacePaths, exercise: Exercise) -> AnswerResult | None:
    """Return the result for the learner's predictions of an exercise, or None if the exercise asks for none.

    For a number, the first right prediction counts. For a choice, only the first prediction counts, because its run shows the
    right option. It counts in full if no other prediction and no run with the same parameters came before it.
    """
    prediction = exercise.predict
    if prediction is None:
        return None
    run_predictions: list[RunPrediction] = []
    for item in _iterate_predictions(paths, exercise):
        run_predictions.append(item)
        if item.result.verdict == "passed" or prediction.kind == "choice":
            break
    if not run_predictions:
        return AnswerResult(
            id=prediction.id, kind="prediction", text=prediction.text, verdict="open", evidence=prediction.evidence
        )
    counted = run_predictions[-1]
    return AnswerResult(
        id=prediction.id,
        kind="prediction",
        text=prediction.text,
        verdict=counted.result.verdict,
        answer=counted.result.prediction,
        said=f"measured {counted.result.measurement}, {counted.result.deviation}, run {counted.record.id}",
        explanation=counted.result.explanation,
        evidence=prediction.evidence,
        share=_compute_share(counted, is_first=len(run_predictions) == 1),
    )


def _compute_share(prediction: RunPrediction, *, is_first: bool) -> float:
    share = prediction.result.share or 0.0
    return share if share <= 0 or (prediction.blind and is_first) else SECOND


def _iterate_predictions(paths: WorkspacePaths, exercise: Exercise) -> Iterator[RunPrediction]:
    settings: list[tuple[object, ...]] = []
    for record in runs.readable(paths, exercise.id)[0]:
        if not record.is_evidence:
            continue
        setting = (record.parameters, record.world_size, record.mode)
        if record.prediction is None:
            settings.append(setting)
            continue
        if seals.find_changed_files(runs.files_of(paths, record), seals.EVIDENCE):
            settings.append(setting)
            continue
        try:
            result = read_prediction(paths, exercise, record)
        except GpucourseError:  # a file is damaged, so the run counts for nothing
            result = None
        if result is not None and result.verdict in JUDGED:
            yield RunPrediction(record=record, result=result, blind=setting not in settings)
        settings.append(setting)
