"""From evidence to points. Every row of the rubric is shared out equally among its exercises and its kinds of evidence.

A check or a question that needs a GPU where there was none is left out of its share, and the row says so by its level. What
was never run, answered or handed in counts as nothing; so does a run whose files were changed after it. Free text counts
by the judgement of a reviewer, and until then only as points that wait; a learner's own judgement gives none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpucourse.model.rubric import Kind, Part, Row
from gpucourse.model.score import ExerciseEvidence, Grade, Level, PartScore, Piece, QuizScore, RowScore


def grade(
    parts: Sequence[Part],
    exercises: Mapping[str, Sequence[str]],
    evidence: Mapping[str, ExerciseEvidence],
    quiz: QuizScore | None = None,
) -> Grade:
    """Every point. `exercises` are those of each module that is here, in order; `evidence` is of each of them."""
    scores = tuple(_part(part, exercises.get(part.module), evidence) for part in parts)
    counted = [score for score in scores if score.counts == "course"]
    bonus = [score for score in scores if score.counts == "bonus"]
    return Grade(
        points=sum(score.points for score in counted),
        earned=_round_points(sum(score.earned for score in counted)),
        bonus_points=sum(score.points for score in bonus),
        bonus=_round_points(sum(score.earned for score in bonus)),
        waiting=_round_points(sum(score.waiting for score in (*counted, *bonus))),
        parts=scores,
        quiz=quiz,
        changed={name: exercise_evidence.changed for name, exercise_evidence in evidence.items() if exercise_evidence.changed},
    )


def _part(part: Part, exercises: Sequence[str] | None, evidence: Mapping[str, ExerciseEvidence]) -> PartScore:
    rows = tuple(_row(row, exercises or (), evidence) for row in part.rows)
    return PartScore(
        module=part.module,
        title=part.title,
        counts=part.counts,
        here=exercises is not None,
        points=part.points,
        earned=_round_points(sum(row.earned for row in rows)),
        waiting=_round_points(sum(row.waiting for row in rows)),
        rows=rows,
    )


def _row(row: Row, exercises: Sequence[str], evidence: Mapping[str, ExerciseEvidence]) -> RowScore:
    asked = [(name, kind) for name in row.exercises or exercises for kind in row.evidence]
    pieces = [piece for name, kind in asked if (piece := _piece(kind, evidence.get(name), name)) is not None]
    shares = [piece.got / piece.of for piece, _ in pieces]
    waiting = [waits / piece.of for piece, waits in pieces]
    levels = [evidence[piece.exercise].level for piece, _ in pieces if piece.got and piece.exercise in evidence]
    return RowScore(
        id=row.id,
        title=row.title,
        points=row.points,
        earned=_round_points(row.points * _mean(shares)),
        waiting=_round_points(row.points * _mean(waiting)),
        level=_level(levels),
        pieces=tuple(piece for piece, _ in pieces),
    )


def _piece(kind: Kind, evidence: ExerciseEvidence | None, name: str) -> tuple[Piece, float] | None:
    """One share of a row and how much of it waits for a person; None where the exercise has nothing of this kind."""
    if evidence is None:
        return _make_piece(name, kind, 0, 1, "not in this course"), 0.0
    if kind == "checks":
        return _checks(evidence)
    return _deliverables(evidence) if kind == "deliverables" else _answers(evidence)


def _make_piece(exercise: str, kind: Kind, got: float, of: int, note: str = "", short: str = "") -> Piece:
    return Piece(exercise=exercise, kind=kind, got=got, of=of, note=note, short=short or note)


def _void(evidence: ExerciseEvidence) -> str:
    """Why nothing that a run left can count; empty where it can."""
    if evidence.trouble:
        return evidence.trouble
    if evidence.run is None:
        return "no run yet"
    return f"changed after the run: {', '.join(evidence.changed[:3])}" if evidence.changed else ""


def _checks(evidence: ExerciseEvidence) -> tuple[Piece, float] | None:
    if why := _void(evidence):
        return _make_piece(evidence.exercise, "checks", 0, max(1, len(evidence.checks)), why), 0.0
    counted = [check for check in evidence.checks if not (check.verdict == "not_measured" and check.evidence == "gpu")]
    if not counted:
        return (
            (_make_piece(evidence.exercise, "checks", 0, len(evidence.checks), "needs a GPU"), 0.0) if evidence.checks else None
        )
    bad = [check.id for check in counted if check.verdict != "passed"]
    note = f"not passed: {', '.join(bad)}" if bad else ""
    short = f"{len(bad)} of {len(counted)} checks not passed" if bad else ""
    return _make_piece(evidence.exercise, "checks", len(counted) - len(bad), len(counted), note, short), 0.0


def _deliverables(evidence: ExerciseEvidence) -> tuple[Piece, float] | None:
    if not evidence.wanted:
        return None
    if why := _void(evidence):
        return _make_piece(evidence.exercise, "deliverables", 0, len(evidence.wanted), why), 0.0
    missing = [title for title in evidence.wanted if title not in evidence.handed_in]
    note = f"missing: {', '.join(missing)}" if missing else ""
    short = f"{len(missing)} of {len(evidence.wanted)} files missing" if missing else ""
    return _make_piece(
        evidence.exercise, "deliverables", len(evidence.wanted) - len(missing), len(evidence.wanted), note, short
    ), 0.0


def _answers(evidence: ExerciseEvidence) -> tuple[Piece, float] | None:
    counted = [answer for answer in evidence.answers if answer.evidence != "gpu" or evidence.level == "gpu"]
    if not counted:
        return (
            (_make_piece(evidence.exercise, "answers", 0, len(evidence.answers), "needs a GPU"), 0.0)
            if evidence.answers
            else None
        )
    got = sum(1.0 if answer.verdict == "passed" else answer.share or 0.0 for answer in counted)
    waits = sum(answer.verdict == "kept" and answer.share is None for answer in counted)
    words = {"open": "open", "failed": "wrong", "error": "not comparable"}
    lacking = {
        name: ids for word, name in words.items() if (ids := [answer.id for answer in counted if answer.verdict == word])
    }
    own = sum(answer.self_judged for answer in counted)
    person = [f"{waits} for a person to judge{f' ({own} self-judged, not counted)' if own else ''}"] if waits else []
    note = "; ".join([f"{name}: {', '.join(ids)}" for name, ids in lacking.items()] + person)
    short = ", ".join([f"{len(ids)} {name}" for name, ids in lacking.items()] + person)
    return _make_piece(evidence.exercise, "answers", got, len(counted), note, short), float(waits)


def _level(levels: Iterable[Level]) -> Level:
    there = {level for level in levels if level != "none"}
    return "none" if not there else "gpu" if there == {"gpu"} else "logic"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _round_points(points: float) -> float:
    return round(points, 2)
