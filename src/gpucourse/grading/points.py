"""Points from evidence. Each row of the rubric is divided equally among its exercises, and within an exercise by the weights of
its kinds of evidence. In the whole course, each exercise has the same points, divided in the same way by `EXERCISE_WEIGHTS`.

Without a GPU, the checks and questions that need one are left out, and the row's `level` shows this. Missing work earns
nothing, and a run whose files were changed afterwards earns nothing either. Free text earns the points that a reviewer awards.
Until then, the learner's own judgement earns at most half of them, and the remaining points wait. A part that copies a
solution of the course also waits for a reviewer. Choices that stay wrong take points from the other evidence in their row, so
that guessing earns none. No module falls below 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from gpucourse.model.answer import AnswerResult
from gpucourse.model.rubric import EXERCISE_POINTS, EXERCISE_WEIGHTS, KINDS, Kind, Row, RubricPart
from gpucourse.model.score import (
    NO_RUN,
    ExerciseEvidence,
    Grade,
    Level,
    ModuleScore,
    PartReview,
    PartScore,
    Piece,
    QuizScore,
    RowScore,
    Signs,
    WholeCourse,
    list_missing,
)
from gpucourse.model.verdict import PartResult, count_verdicts

Score = TypeVar("Score", bound=ModuleScore)

_ANSWERED = frozenset({"passed", "kept", "not_measured"})


def grade(
    parts: Sequence[RubricPart],
    exercises: Mapping[str, Sequence[str]],
    evidence: Mapping[str, ExerciseEvidence],
    quiz: QuizScore | None = None,
    *,
    titles: Mapping[str, str] | None = None,
) -> Grade:
    """Return the whole grade. `exercises` lists the exercises of each module in order; `evidence` contains the evidence of each
    exercise; `titles` contains the titles of modules and exercises by their numbers."""
    return _sum_up(
        tuple(_part(part, exercises.get(part.module), evidence) for part in parts),
        tuple(_module(module, names, evidence, titles or {}) for module, names in exercises.items()),
        quiz,
        changed_files={
            name: exercise_evidence.changed for name, exercise_evidence in evidence.items() if exercise_evidence.changed
        },
        learner_judged={
            name: learner_judged for name, item in evidence.items() if (learner_judged := _list_learner_judged(item))
        },
        signs={name: read_signs(exercise_evidence) for name, exercise_evidence in evidence.items()},
    )


def narrow(result: Grade, exercises: Collection[str]) -> Grade:
    """Return the part of a grade that belongs to these exercises: their rows, with only the points from these exercises."""
    return _sum_up(
        tuple(part for whole in result.parts if (part := _narrow_part(whole, exercises)).rows),
        tuple(module for whole in result.whole_course.modules if (module := _narrow_part(whole, exercises)).rows),
        None,
        changed_files={name: files for name, files in result.changed.items() if name in exercises},
        learner_judged={name: parts for name, parts in result.learner_judged.items() if name in exercises},
        signs={name: signs for name, signs in result.signs.items() if name in exercises},
    )


def _narrow_part(part: Score, exercises: Collection[str]) -> Score:
    rows = tuple(_narrow_row(row, exercises) for row in part.rows if any(piece.exercise in exercises for piece in row.pieces))
    return replace(
        part,
        points=_round_points(sum(row.points for row in rows)),
        earned=_sum_earned(rows),
        waiting=_sum_waiting(rows),
        rows=rows,
    )


def _sum_earned(rows: Iterable[RowScore]) -> float:
    return _round_points(max(0.0, sum(row.earned for row in rows)))


def _sum_waiting(rows: Iterable[RowScore]) -> float:
    return _round_points(sum(row.waiting for row in rows))


def _narrow_row(row: RowScore, exercises: Collection[str]) -> RowScore:
    pieces = tuple(piece for piece in row.pieces if piece.exercise in exercises)
    return replace(
        row,
        points=_round_points(row.points * sum(piece.share for piece in pieces)),
        earned=_count_earned(row.points, pieces),
        waiting=_count_waiting(row.points, pieces),
        level=row.level if any(piece.got for piece in pieces) else "none",
        missing=list_missing(pieces),
        pieces=pieces,
    )


def _count_earned(points: float, pieces: Iterable[Piece]) -> float:
    return _round_points(points * sum(piece.share * piece.got / piece.of for piece in pieces))


def _count_waiting(points: float, pieces: Iterable[Piece]) -> float:
    return _round_points(points * sum(piece.share * piece.waits / piece.of for piece in pieces))


def _sum_up(
    scores: tuple[PartScore, ...],
    modules: tuple[ModuleScore, ...],
    quiz: QuizScore | None,
    *,
    changed_files: dict[str, tuple[str, ...]],
    learner_judged: dict[str, tuple[str, ...]],
    signs: dict[str, Signs],
) -> Grade:
    """Return the grade that consists of these parts of the rubric and these modules of the whole course, with totals."""
    in_course = [score for score in scores if score.counts == "course"]
    bonus = [score for score in scores if score.counts == "bonus"]
    points, earned = sum(module.points for module in modules), sum(module.earned for module in modules)
    return Grade(
        points=sum(score.points for score in in_course),
        earned=_round_points(sum(score.earned for score in in_course)),
        bonus_points=sum(score.points for score in bonus),
        bonus=_round_points(sum(score.earned for score in bonus)),
        waiting=_round_points(sum(score.waiting for score in (*in_course, *bonus))),
        parts=scores,
        whole_course=WholeCourse(
            points=points,
            earned=_round_points(earned),
            waiting=_round_points(sum(module.waiting for module in modules)),
            percent=round(100 * earned / points, 1) if points else 0.0,
            modules=modules,
        ),
        quiz=quiz,
        changed=changed_files,
        learner_judged=learner_judged,
        signs=signs,
    )


def _part(part: RubricPart, exercises: Sequence[str] | None, evidence: Mapping[str, ExerciseEvidence]) -> PartScore:
    rows = tuple(_row(row, exercises or (), evidence) for row in part.rows)
    return PartScore(
        module=part.module,
        title=part.title or f"module {part.module}",
        counts=part.counts,
        here=exercises is not None,
        points=part.points,
        earned=_sum_earned(rows),
        waiting=_sum_waiting(rows),
        rows=rows,
    )


def _module(
    module: str, exercises: Sequence[str], evidence: Mapping[str, ExerciseEvidence], titles: Mapping[str, str]
) -> ModuleScore:
    """Return the points of a module in the whole course."""
    rows: list[RowScore] = []
    for name in exercises:
        row = Row(
            id="exercise",
            title=titles.get(name, name),
            points=EXERCISE_POINTS,
            evidence=dict(EXERCISE_WEIGHTS),
            exercises=(name,),
        )
        rows.append(replace(_row(row, exercises, evidence), id=name))
    return ModuleScore(
        module=module,
        title=titles.get(module, f"module {module}"),
        points=sum(row.points for row in rows),
        earned=_sum_earned(rows),
        waiting=_sum_waiting(rows),
        rows=tuple(rows),
    )


def _row(row: Row, exercises: Sequence[str], evidence: Mapping[str, ExerciseEvidence]) -> RowScore:
    scores = [score for name in row.exercises or exercises if (score := _exercise(row, evidence.get(name), name))]
    pieces = tuple(replace(piece, share=piece.share / len(scores)) for score in scores for piece in score)
    levels = [evidence[piece.exercise].level for piece in pieces if piece.got and piece.exercise in evidence]
    return RowScore(
        id=row.id,
        title=row.title,
        points=row.points,
        earned=_count_earned(row.points, pieces),
        waiting=_count_waiting(row.points, pieces),
        level=_level(levels),
        missing=list_missing(pieces),
        pieces=pieces,
    )


def _exercise(row: Row, evidence: ExerciseEvidence | None, name: str) -> list[Piece]:
    """Return the pieces of a row for one exercise, one for each kind of evidence. Return nothing if the exercise has none of
    these kinds."""
    if evidence is None:
        missing = {kind: _make_piece(name, kind, 0, 1, "not in this course") for kind in KINDS}
        return [replace(missing[kind], share=share) for kind, share in row.shares(KINDS).items()]
    pieces = {kind: piece for kind in row.evidence if (piece := _PIECES[kind](evidence)) is not None}
    return [replace(pieces[kind], share=share) for kind, share in row.shares(pieces.keys()).items()]


def _make_piece(exercise: str, kind: Kind, points: float, of: int, note: str = "", short: str = "", waits: float = 0) -> Piece:
    return Piece(exercise=exercise, kind=kind, got=points, of=of, waits=float(waits), note=note, short=short or note)


def _group_by_state(states: Sequence[tuple[str, str]], names: Mapping[str, str]) -> dict[str, list[str]]:
    """Group ids by their states. `states` contains pairs of id and state. `names` contains the name of each state, which
    becomes a key of the result."""
    groups = {name: [item for item, state in states if state == word] for word, name in names.items()}
    return {name: ids for name, ids in groups.items() if ids}


def _list_groups(groups: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{name}: {', '.join(ids)}" for name, ids in groups.items()]


def _void(evidence: ExerciseEvidence) -> str:
    """Return why nothing from the run can count, or an empty string if it can count."""
    if evidence.trouble:
        return evidence.trouble
    if evidence.run is None:
        return NO_RUN
    return f"changed after the run: {', '.join(evidence.changed[:3])}" if evidence.changed else ""


def _checks(evidence: ExerciseEvidence) -> Piece | None:
    if reason := _void(evidence):
        return _make_piece(evidence.exercise, "checks", 0, max(1, len(evidence.checks)), reason)
    relevant = [
        (check.id, check.verdict)
        for check in evidence.checks
        if not (check.verdict == "not_measured" and check.evidence == "gpu")
    ]
    if not relevant:
        return _make_piece(evidence.exercise, "checks", 0, len(evidence.checks), "needs a GPU") if evidence.checks else None
    lacking = _group_by_state(relevant, {"failed": "failed", "error": "in error", "not_measured": "not measured"})
    short = count_verdicts(evidence.checks) if lacking else ""
    passed_count = sum(verdict == "passed" for _, verdict in relevant)
    return _make_piece(evidence.exercise, "checks", passed_count, len(relevant), "; ".join(_list_groups(lacking)), short)


def _deliverables(evidence: ExerciseEvidence) -> Piece | None:
    if not evidence.wanted:
        return None
    count = len(evidence.wanted)
    if reason := _void(evidence):
        return _make_piece(evidence.exercise, "deliverables", 0, count, reason)
    missing = [title for title in evidence.wanted if title not in evidence.handed_in]
    note = f"missing: {', '.join(missing)}" if missing else ""
    short = f"{len(missing)} of {count} files missing" if missing else ""
    return _make_piece(evidence.exercise, "deliverables", count - len(missing), count, note, short)


def _make_parts_piece(evidence: ExerciseEvidence) -> Piece | None:
    if not evidence.parts:
        return None
    judgements = {part.id: _judge_part(part, evidence.part_reviews.get(part.id, PartReview())) for part in evidence.parts}
    states = {part: state for part, (state, _) in judgements.items()}
    words = {"open": "open", "failed": "wrong", "error": "not judged", "solution": "as the course's solution (needs review)"}
    lacking = _group_by_state([*states.items()], {**words, "less": "marked down"})
    reasons = [f"{part.id}: {part.says}" for part in evidence.parts if states[part.id] == "error" and part.says]
    waits = len(lacking.get(words["solution"], ()))
    note = "; ".join([*(f"part {text}" for text in _list_groups(lacking)), *reasons])
    short = ", ".join(f"{len(ids)} part{'s' if len(ids) > 1 else ''} {name}" for name, ids in lacking.items())
    points = sum(points for _, points in judgements.values())
    return _make_piece(evidence.exercise, "yours", points, len(evidence.parts), note, short, waits)


def _list_learner_judged(evidence: ExerciseEvidence) -> tuple[str, ...]:
    """Return the parts that count only because the learner's computer judged them."""
    reviews = ((part, evidence.part_reviews.get(part.id, PartReview())) for part in evidence.parts)
    return tuple(part.id for part, review in reviews if review.by_learner and _judge_part(part, review)[0] == "passed")


def _judge_part(part: PartResult, review: PartReview) -> tuple[str, float]:
    """Return the state of a part and its credit from 0 to 1. A reviewer's judgement overrides the judge's. A copied solution
    earns nothing until a reviewer accepts it."""
    if review.share is not None:
        return "judged" if review.share == 1 else "less", review.share
    if part.verdict == "passed" and review.is_solution:
        return "solution", 0.0
    return part.verdict, float(part.verdict == "passed")


def _answers(evidence: ExerciseEvidence) -> Piece | None:
    questions = [*evidence.answers, *([evidence.prediction] if evidence.prediction else [])]
    relevant = [answer for answer in questions if answer.evidence != "gpu" or evidence.level == "gpu"]
    if not relevant:
        return _make_piece(evidence.exercise, "answers", 0, len(questions), "needs a GPU") if questions else None
    points = sum(_credit(answer) for answer in relevant)
    unreviewed_count = sum(answer.verdict == "kept" and answer.share is None for answer in relevant)
    self_judged = [answer for answer in relevant if answer.self_judged]
    waits = unreviewed_count + sum(1 - _credit(answer) for answer in self_judged)
    lacking = _group_answers(answer for answer in relevant if answer is not evidence.prediction)
    counts = [f"{len(ids)} answer{'s' if len(ids) > 1 else ''} {name}" for name, ids in lacking.items()]
    names = _list_groups(lacking)
    for name in _group_answers(answer for answer in relevant if answer is evidence.prediction):
        counts.append(f"1 prediction {name}")
        names.append(f"prediction {name}{_name_way(evidence) if name in {'open', 'wrong'} else ''}")
    person = [f"{unreviewed_count} answer{'s need' if unreviewed_count > 1 else ' needs'} review"] if unreviewed_count else []
    person += [f"{len(self_judged)} self-reviewed"] if self_judged else []
    note, short = "; ".join([*names, *person]), ", ".join([*counts, *person])
    piece = _make_piece(evidence.exercise, "answers", points, len(relevant), note, short, waits)
    return replace(piece, unreviewed=unreviewed_count)


def _group_answers(answers: Iterable[AnswerResult]) -> dict[str, list[str]]:
    """Return the ids of the answers that lack points, by the name of their state."""
    states = [(item.id, "late" if item.verdict == "passed" and _credit(item) < 1 else item.verdict) for item in answers]
    return _group_by_state(states, {"open": "open", "failed": "wrong", "error": "not comparable", "late": "right late"})


def _name_way(evidence: ExerciseEvidence) -> str:
    """Return a colon and the command that records the prediction, or an empty string if there is no prediction."""
    prediction = evidence.prediction
    return f": gpucourse run {evidence.exercise} --predict {prediction.id}=VALUE" if prediction else ""


def _credit(answer: AnswerResult) -> float:
    return answer.share if answer.share is not None else 1.0 if answer.verdict == "passed" else 0.0


_PIECES: Mapping[Kind, Callable[[ExerciseEvidence], Piece | None]] = {
    "checks": _checks,
    "deliverables": _deliverables,
    "yours": _make_parts_piece,
    "answers": _answers,
}


def _level(levels: Iterable[Level]) -> Level:
    available = {level for level in levels if level != "none"}
    return "none" if not available else "gpu" if available == {"gpu"} else "logic"


def _round_points(points: float) -> float:
    return round(points, 2)


def read_signs(evidence: ExerciseEvidence) -> Signs:
    """Return the signs of progress in an exercise. A sign that the exercise does not require is None."""
    bad_checks = [check for check in evidence.checks if check.verdict in {"failed", "error"}]
    return Signs(
        ran=evidence.run is not None and not (bad_checks or evidence.changed or evidence.trouble),
        yours=all(part.verdict == "passed" for part in evidence.parts) if evidence.parts else None,
        answered=not list_unanswered(evidence) if _list_asked(evidence) else None,
    )


def list_unanswered(evidence: ExerciseEvidence) -> list[str]:
    """Return the ids of the questions without an answer, or with a wrong answer and an attempt left."""
    return [answer.id for answer in _list_asked(evidence) if answer.verdict not in _ANSWERED and not answer.final]


def _list_asked(evidence: ExerciseEvidence) -> list[AnswerResult]:
    return [answer for answer in evidence.answers if answer.evidence != "gpu" or evidence.level == "gpu"]
