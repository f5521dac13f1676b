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
        earned=_rounded(sum(score.earned for score in counted)),
        bonus_points=sum(score.points for score in bonus),
        bonus=_rounded(sum(score.earned for score in bonus)),
        waiting=_rounded(sum(score.waiting for score in (*counted, *bonus))),
        parts=scores,
        quiz=quiz,
        changed={name: found.changed for name, found in evidence.items() if found.changed},
    )


def _part(part: Part, exercises: Sequence[str] | None, evidence: Mapping[str, ExerciseEvidence]) -> PartScore:
    rows = tuple(_row(row, exercises or (), evidence) for row in part.rows)
    return PartScore(
        module=part.module,
        title=part.title,
        counts=part.counts,
        here=exercises is not None,
        points=part.points,
        earned=_rounded(sum(row.earned for row in rows)),
        waiting=_rounded(sum(row.waiting for row in rows)),
        rows=rows,
    )


def _row(row: Row, exercises: Sequence[str], evidence: Mapping[str, ExerciseEvidence]) -> RowScore:
    asked = [(name, kind) for name in row.exercises or exercises for kind in row.evidence]
    found = [piece for name, kind in asked if (piece := _piece(kind, evidence.get(name), name)) is not None]
    shares = [piece.got / piece.of for piece, _ in found]
    waiting = [waits / piece.of for piece, waits in found]
    levels = [evidence[piece.exercise].level for piece, _ in found if piece.got and piece.exercise in evidence]
    return RowScore(
        id=row.id,
        title=row.title,
        points=row.points,
        earned=_rounded(row.points * _mean(shares)),
        waiting=_rounded(row.points * _mean(waiting)),
        level=_level(levels),
        pieces=tuple(piece for piece, _ in found),
    )


def _piece(kind: Kind, found: ExerciseEvidence | None, name: str) -> tuple[Piece, float] | None:
    """One share of a row and how much of it waits for a person; None where the exercise has nothing of this kind."""
    if found is None:
        return _made(name, kind, 0, 1, "not in this course"), 0.0
    if kind == "checks":
        return _checks(found)
    return _deliverables(found) if kind == "deliverables" else _answers(found)


def _made(exercise: str, kind: Kind, got: float, of: int, note: str = "", short: str = "") -> Piece:
    return Piece(exercise=exercise, kind=kind, got=got, of=of, note=note, short=short or note)


def _void(found: ExerciseEvidence) -> str:
    """Why nothing that a run left can count; empty where it can."""
    if found.trouble:
        return found.trouble
    if found.run is None:
        return "no run yet"
    return f"changed after the run: {', '.join(found.changed[:3])}" if found.changed else ""


def _checks(found: ExerciseEvidence) -> tuple[Piece, float] | None:
    if why := _void(found):
        return _made(found.exercise, "checks", 0, max(1, len(found.checks)), why), 0.0
    counted = [check for check in found.checks if not (check.verdict == "not_measured" and check.evidence == "gpu")]
    if not counted:
        return (_made(found.exercise, "checks", 0, len(found.checks), "needs a GPU"), 0.0) if found.checks else None
    bad = [check.id for check in counted if check.verdict != "passed"]
    note = f"not passed: {', '.join(bad)}" if bad else ""
    short = f"{len(bad)} of {len(counted)} checks not passed" if bad else ""
    return _made(found.exercise, "checks", len(counted) - len(bad), len(counted), note, short), 0.0


def _deliverables(found: ExerciseEvidence) -> tuple[Piece, float] | None:
    if not found.wanted:
        return None
    if why := _void(found):
        return _made(found.exercise, "deliverables", 0, len(found.wanted), why), 0.0
    missing = [each for each in found.wanted if each not in found.handed_in]
    note = f"missing: {', '.join(missing)}" if missing else ""
    short = f"{len(missing)} of {len(found.wanted)} files missing" if missing else ""
    return _made(found.exercise, "deliverables", len(found.wanted) - len(missing), len(found.wanted), note, short), 0.0


def _answers(found: ExerciseEvidence) -> tuple[Piece, float] | None:
    counted = [each for each in found.answers if each.evidence != "gpu" or found.level == "gpu"]
    if not counted:
        return (_made(found.exercise, "answers", 0, len(found.answers), "needs a GPU"), 0.0) if found.answers else None
    got = sum(1.0 if each.verdict == "passed" else each.share or 0.0 for each in counted)
    waits = sum(each.verdict == "kept" and each.share is None for each in counted)
    words = {"open": "open", "failed": "wrong", "error": "not comparable"}
    lacking = {name: ids for word, name in words.items() if (ids := [each.id for each in counted if each.verdict == word])}
    own = sum(each.self_judged for each in counted)
    person = [f"{waits} for a person to judge{f' ({own} self-judged, not counted)' if own else ''}"] if waits else []
    note = "; ".join([f"{name}: {', '.join(ids)}" for name, ids in lacking.items()] + person)
    short = ", ".join([f"{len(ids)} {name}" for name, ids in lacking.items()] + person)
    return _made(found.exercise, "answers", got, len(counted), note, short), float(waits)


def _level(levels: Iterable[Level]) -> Level:
    there = {level for level in levels if level != "none"}
    return "none" if not there else "gpu" if there == {"gpu"} else "logic"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _rounded(points: float) -> float:
    return round(points, 2)
