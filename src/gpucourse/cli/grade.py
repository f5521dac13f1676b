"""The command `grade`: shows points, makes and opens bundles, and stores judgements of free text."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.asking import ask, ask_valid, can_answer
from gpucourse.cli.output import UNSET, CardDocument, JsonDocument, UnsetType
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, GpucourseError, UsageError
from gpucourse.grading.edits import FileEdit, count_script_lines
from gpucourse.model.event import Note
from gpucourse.model.score import PartScore, QuizScore, WholeCourse

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.learning.grade import Pending
    from gpucourse.learning.review.edits import GradedBundle


class PointsDocument(JsonDocument):
    """The points of one learner. `points` is the rubric's total, and `earned` is how many of them are earned. `whole_course`
    has every module with its exercises, their sum and the earned share in percent. `done` is the number of exercises done, out
    of `exercises`. `changed` names the files that were changed after their run. `learner_judged` names the parts that only the
    learner's computer judged.
    """

    points: float
    earned: float
    bonus_points: float
    bonus: float
    waiting: float
    done: int
    exercises: int
    parts: list[PartScore]
    whole_course: WholeCourse
    quiz: QuizScore | None
    changed: dict[str, list[str]]
    learner_judged: dict[str, list[str]]


class Points(PointsDocument):
    """The output of `grade`."""


class NewBundle(JsonDocument):
    """The output of `grade --bundle`."""

    bundle: Path
    card: CardDocument


class EditsDocument(JsonDocument):
    """The edits in one exercise. `lines` is the number of edited lines in the course's own scripts; `files` names the edited
    files."""

    exercise: str
    lines: int
    files: list[str]


class BundleDocument(JsonDocument):
    """One bundle that was opened. `changed` lists the files that were changed after it was made. `diffs` is set only with
    --exercise."""

    bundle: Path
    card: CardDocument
    changed: list[str]
    edited_lines: int
    edits: list[EditsDocument]
    grade: PointsDocument
    diffs: list[FileEdit] | UnsetType = UNSET


class GradedBundles(JsonDocument):
    """The output of `grade --open`."""

    bundles: list[BundleDocument]
    errors: list[str]


def grade(
    session: Session,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, for a spreadsheet.")] = False,
    review: Annotated[
        bool, typer.Option("--review", help="Judge free-text answers; your judgement of your own answers counts half.")
    ] = False,
    judge: Annotated[
        list[str] | None, typer.Option("--judge", help="Judge one answer without a prompt: 3.2/why=80 (percent).")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="The name of the person who judges, or who hands in the work.")] = None,
    bundle: Annotated[Path | None, typer.Option("--bundle", help="Write the file to hand in: work.zip")] = None,
    open_: Annotated[
        list[Path] | None, typer.Option("--open", help="Open what a learner handed in; several bundles make a class table.")
    ] = None,
    exercise: Annotated[
        str | None,
        typer.Option(
            "--exercise",
            help="One exercise: show its edits (--open), or run only it (--rerun).",
            autocompletion=complete.exercises,
        ),
    ] = None,
    rerun: Annotated[
        Path | None,
        typer.Option("--rerun", help="Run a bundle's scripts on simulated nodes and judge its parts again, then compare."),
    ] = None,
    original: Annotated[
        bool, typer.Option("--original", help="With --rerun: the course's own scripts in place of edited ones.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --rerun: do not ask.")] = False,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXERCISE|MODULE|BUNDLE...]",
            help="Only the points of an exercise (3.2) or a module (3). After --open: more bundles, as in grade --open *.zip.",
            autocompletion=complete.lessons,
        ),
    ] = None,
) -> None:
    """Show your points, or those of a bundle."""
    subject = None if open_ or not words else complete.spell_number(words[0])
    if subject is not None:
        _check_subject(subject, is_alone=not (len(words or ()) > 1 or rerun or bundle or review or judge or exercise))
    if rerun is not None:
        from gpucourse.cli.grade_rerun import show_reruns

        _check_alone("--rerun", rerun, bundle, open_, csv, review, judge)
        show_reruns(session, rerun, exercise, original=original, yes=yes)
        return
    if original or yes:
        raise UsageError("--original and --yes belong to --rerun", hint="gpucourse grade --rerun work.zip --original")
    bundles = list(dict.fromkeys([*open_, *map(Path, words or ())])) if open_ else []
    if exercise is not None and len(bundles) != 1:
        raise UsageError("--exercise needs exactly one bundle", hint=f"gpucourse grade --open work.zip --exercise {exercise}")
    if csv and session.options.json:
        raise UsageError("--csv and --json cannot be combined", hint="gpucourse grade --csv > points.csv")
    judging = bool(review or judge)
    workspace = session.context if bundle is not None or bundles or judging else session.look()
    context = workspace.watched_by(lambda event: session.console.warn(event.text) if isinstance(event, Note) else None)
    if bundle is not None:
        _check_alone("--bundle", bundle, open_, csv, judging)
        _pack_bundle(session, context, bundle, by)
    elif bundles:
        if judging and len(bundles) > 1:
            hint = f"gpucourse grade --open {_quote(bundles[0])} --review"
            raise UsageError("--review accepts one bundle at a time", hint=hint)
        judge_answers = (lambda bundle: _review(session, bundle, judge or [], by, bundles[0])) if judging else None
        _show_bundles(session, context, bundles, judge_answers, exercise, csv=csv)
    else:
        if judging:
            _review(session, context, judge or [], by)
        _show_own(session, context, subject, csv=csv)


def _check_subject(subject: str, *, is_alone: bool) -> None:
    """Raise UsageError if the word is a file, or if the command also asks for something other than points."""
    if Path(subject).suffix == ".zip" or Path(subject).is_file():
        raise UsageError(
            f"{subject} looks like a file, not like an exercise or a module",
            hint=f"gpucourse grade --open {shlex.quote(subject)}",
        )
    if not is_alone:
        raise UsageError(
            f"grade {subject} shows points, and accepts only --json or --csv", hint=f"gpucourse grade {shlex.quote(subject)}"
        )


def _check_alone(option: str, path: Path, *values: object) -> None:
    """Raise UsageError if `option` is combined with another option, whose value is then among `values`. `path` is for the
    hint."""
    if any(values):
        raise UsageError(f"{option} cannot be combined with other options", hint=f"gpucourse grade {option} {_quote(path)}")


def _show_own(session: Session, context: Context, subject: str | None, *, csv: bool) -> None:
    from gpucourse.learning.grade import grade as act
    from gpucourse.learning.grade import grade_subject, name_learner
    from gpucourse.learning.review.edits import list_all_edits
    from gpucourse.ui.views import grade as views
    from gpucourse.units import now_utc

    console = session.console
    title, points = grade_subject(context, subject) if subject is not None else ("", act(context))
    if csv:
        edits = list_all_edits(context)
        console.text(views.format_csv([(name_learner(context.settings), now_utc(), points, edits)]))
    else:
        view = views.grade(points, subject=title, verbose=console.verbose)
        session.present(view, Points.build(points), place=subject or "")
    if points.changed:
        raise CheckFailed(
            f"files were changed: {_shorten(tuple(points.changed))}", hint="gpucourse check --all says which, and what to do"
        )


def _show_bundles(
    session: Session,
    context: Context,
    paths: list[Path],
    review: Callable[[Context], None] | None,
    exercise: str | None,
    *,
    csv: bool,
) -> None:
    """Show the points of every bundle that can be opened, then say why the others could not be opened. The most serious error
    decides the exit code."""
    from gpucourse.ui.views import grade as views

    if exercise is not None:
        context.catalog.exercise(exercise)  # an unknown name is reported before anything is opened
    console = session.console
    graded_bundles: list[GradedBundle] = []
    errors: list[GpucourseError] = []
    for path in paths:
        try:
            graded_bundles.append(_grade_bundle(context, path, review))
        except GpucourseError as error:
            if len(paths) == 1:
                raise
            errors.append(error)
    if csv:
        rows = [(item.bundle.card.by, item.bundle.card.made, item.grade, item.edits) for item in graded_bundles]
        console.text(views.format_csv(rows))
    else:
        bundles = [_describe_bundle(item, exercise) for item in graded_bundles]
        console.document(GradedBundles(bundles=bundles, errors=[error.what for error in errors]))
        if exercise is not None:
            console.show(views.edits(graded_bundles[0], exercise))
        elif len(paths) > 1:
            console.show(views.class_table(graded_bundles, broken_count=len(errors)))
        else:
            is_own = graded_bundles[0].bundle.card.workspace == context.workspace.id
            console.show(views.bundle_grade(graded_bundles[0], is_own=is_own, verbose=console.verbose))
    session.fail([*errors, *_list_changed(graded_bundles)])


def _list_changed(graded_bundles: list[GradedBundle]) -> Iterator[CheckFailed]:
    """Yield an error for each bundle in which files were changed after they were sealed."""
    for item in graded_bundles:
        if files := item.bundle.changed or tuple(item.grade.changed):
            path = item.bundle.path
            hint = f"gpucourse grade --open {_quote(path)} shows them, and the points that they cost"
            yield CheckFailed(f"files were changed: {path.name}: {_shorten(files)}", hint=hint)


def _describe_bundle(graded_bundle: GradedBundle, exercise: str | None) -> BundleDocument:
    """Return the document of one bundle, with the diffs of the named exercise."""
    return BundleDocument(
        bundle=graded_bundle.bundle.path,
        card=CardDocument.build(graded_bundle.bundle.card),
        changed=list(graded_bundle.bundle.changed),
        edited_lines=graded_bundle.edited_lines,
        edits=[
            EditsDocument(exercise=number, lines=count_script_lines({number: edits}), files=[edit.file for edit in edits])
            for number, edits in graded_bundle.edits.items()
        ],
        grade=PointsDocument.build(graded_bundle.grade),
        diffs=list(graded_bundle.edits.get(exercise, ())) if exercise is not None else UNSET,
    )


def _grade_bundle(context: Context, path: Path, review: Callable[[Context], None] | None) -> GradedBundle:
    from gpucourse.learning.bundle import check_reviewer, open_bundle
    from gpucourse.learning.review.edits import grade_bundle

    with open_bundle(context, path) as bundle:
        if review is not None:
            check_reviewer(context.workspace, bundle)
            review(bundle.context)
        return grade_bundle(bundle)


def _pack_bundle(session: Session, context: Context, path: Path, by: str | None) -> None:
    from gpucourse.learning.bundle import pack
    from gpucourse.ui.views.grade import new_bundle

    card = pack(context, path, by=by)
    session.present(new_bundle(card, str(path)), NewBundle.build(bundle=path, card=card))


def _review(session: Session, context: Context, judgements: list[str], by: str | None, bundle: Path | None = None) -> None:
    from gpucourse.learning import grade as act

    if context.reviewed is None:
        session.console.note(
            "your own judgement counts half, until an instructor judges your bundle: gpucourse grade --bundle work.zip"
        )
    reviews = []
    for judgement in judgements:
        place, equals, percent = judgement.partition("=")
        exercise, slash, question = place.partition("/")
        number = percent.strip().removesuffix("%")
        if not (equals and slash and number.isascii() and number.isdecimal()):
            raise UsageError(f"--judge {judgement}: not of the form 3.2/why=80", hint="80 is the mark, in percent")
        name = by if by is not None else act.name_learner(session.context.settings)
        reviews.append(act.judgement(context, complete.spell_number(exercise), question, int(number) / 100, by=name))
    act.keep(context, reviews)  # all of them, or none
    if judgements:
        return
    waiting = act.list_pending(context)
    if not waiting:
        session.console.note("nothing is waiting for review")
        return
    if not can_answer(session):
        first, open_option = waiting[0], f"--open {_quote(bundle)} " if bundle else ""
        raise UsageError(
            f"answers to review: {len(waiting)}; this is not a terminal",
            hint=f"gpucourse grade {open_option}--review --judge {first.exercise}/{first.id}=80 --by NAME",
        )
    _ask_judgements(session, context, waiting, by)


def _ask_judgements(session: Session, context: Context, waiting: list[Pending], by: str | None) -> None:
    from gpucourse.learning import grade as act
    from gpucourse.ui.views.grade import pending_answer

    usual = act.name_learner(session.context.settings)
    name = by or ask(session, f"your name, which is kept with each judgement [{usual}]> ")
    if name is None:
        return
    session.console.note("How good is each answer, from 0 to 100 percent? Enter leaves it for later; Ctrl-D ends.")
    for number, pending in enumerate(waiting, 1):
        session.console.show(pending_answer(pending, number, len(waiting)))
        line = ask_valid(session, "percent> ", _read_share)
        if line is None:
            return
        if line:
            comment = ask(session, "comment for the learner> ") or ""
            share = _read_share(line)
            act.keep(context, [act.judgement(context, pending.exercise, pending.id, share, by=name or usual, comment=comment)])


def _read_share(text: str) -> float:
    """Return the typed percentage as a number from 0 to 1. Raises ValueError if it is not a percentage."""
    percent = text.strip().removesuffix("%").strip()
    if not (percent.isascii() and percent.isdecimal()) or int(percent) > 100:
        raise ValueError(f"'{text}' is not a whole number from 0 to 100")
    return int(percent) / 100


def _shorten(names: tuple[str, ...]) -> str:
    """Return the first three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _quote(path: Path) -> str:
    return shlex.quote(str(path))
