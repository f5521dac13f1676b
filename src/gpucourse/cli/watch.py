"""The command `watch`: judges a part, or runs an exercise or a program, each time a file is saved."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.asking import set_terminal
from gpucourse.cli.flags import ParametersFlag, read_settings
from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode, GpucourseError, Interrupted, MissingError, UsageError

if TYPE_CHECKING:
    from gpucourse.model.deployment import Deployment
    from gpucourse.model.manifest import Exercise
    from gpucourse.runs.resolve import RunRequest
    from gpucourse.ui.tables import View


_KEYS = {"r": "run", "t": "try", "h": "hint", "c": "check", "n": "next", "l": "list", "q": "quit"}

END = "\x04"  # Ctrl-D; also read if the terminal is gone


def watch(
    session: Session,
    exercise: Annotated[
        str | None,
        typer.Argument(
            help="The number of an exercise (default: that of the next step), or a CUDA program: my.cu",
            autocompletion=complete.exercises,
        ),
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="The number of nodes.")] = None,
    settings: ParametersFlag = None,
) -> int:
    """Judge your part, or run an exercise or a program, on each save."""
    from gpucourse.course.parameters import resolve
    from gpucourse.learning import watch as act
    from gpucourse.runs.resolve import RunRequest

    if exercise is not None and Path(exercise).suffix in (".cu", ".py"):
        return _watch_cuda(session, Path(exercise), has_options=nodes is not None or bool(settings))
    subject = session.require_exercise(exercise) if exercise else act.find_current_exercise(session.context)
    keys = session.is_watching = can_read_keys(session)
    # The terminal shows no typed key, not even while a command runs.
    quiet_keys = set_terminal(tty.setcbreak, termios.TCSANOW) if keys else nullcontext()
    with quiet_keys, suppress(KeyboardInterrupt):
        following: Exercise | None = subject
        while following is not None:
            # The settings are for the named exercise; another exercise has other parameters.
            values = (
                read_settings(settings or [], f"gpucourse show {subject.id} lists its parameters")
                if following == subject
                else {}
            )
            request = RunRequest(exercise=following.id, nodes=nodes, settings=values)
            lab = _find_lab(session, following)
            resolve(following, request.settings, local=lab is None or lab.is_simulated)
            following = _watch_one(session, following, request, keys=keys, has_lab=lab is not None)
    session.console.note("no longer watching")
    return ExitCode.DONE


def _watch_cuda(session: Session, source: Path, *, has_options: bool) -> int:
    """Run a CUDA program or Triton kernels on each save. Raises UsageError for options that only exercises have."""
    from gpucourse.cli.cuda import watch_cuda

    if has_options:
        raise UsageError("--nodes and --set are for an exercise", hint=f"gpucourse watch {source}")
    return watch_cuda(session, source)


def _watch_one(session: Session, exercise: Exercise, run_request: RunRequest, *, keys: bool, has_lab: bool) -> Exercise | None:
    """React to saved files and to keys. Return the exercise to watch next, or None if the person ends the command."""
    from gpucourse.learning import watch as act
    from gpucourse.learning.next_ import find_next_step
    from gpucourse.ui.text import format_count

    context = session.context
    files = act.list_watched_files(context, exercise)
    stamps = act.read_stamps(files)  # before the note, so that a save right after it is detected
    purposes = ["your part to have it judged"] if exercise.yours else []
    purposes += [f"{'another file' if exercise.yours else 'one'} to run the exercise"] if has_lab else []
    session.console.note(
        f"watching {format_count(len(files) - 1, 'file')} of {exercise.id} in {context.paths.exercises}, and your answers: "
        f"save {', or '.join(purposes)}. Ctrl-C ends."
    )
    place = _begin(session, exercise) if keys else None
    for event in act.wait_for_saves(context.stop, files, earlier=stamps, read_key=read_key if keys else None):
        if event in {"q", END}:
            return None
        if event == "n" and (following := find_next_step(context).exercise) is not None and following.id != exercise.id:
            return following
        if isinstance(event, str) and event not in _KEYS:
            continue
        try:
            if isinstance(event, str):
                _handle_key(session, event, exercise, run_request)
            else:
                session.console.note(f"saved: {', '.join(path.name for path in event)}")
                _handle_saved(session, exercise, run_request, event)
        except Interrupted as error:
            session.console.error(error)
            return None
        except GpucourseError as error:
            session.console.error(error)
        if keys:
            drop_keys()
            place = _show_place(session, exercise, place)
        else:
            session.console.note("watching; Ctrl-C ends")
    return None


def _begin(session: Session, exercise: Exercise) -> View:
    """Show the current state immediately: the parts, and the learner's place in the course. Return the place."""
    if any(part.judge for part in exercise.yours):
        try:
            _judge(session, exercise, ())
        except GpucourseError as error:
            session.console.error(error)
    return _show_place(session, exercise)


def _judge(session: Session, exercise: Exercise, files: Sequence[Path]) -> None:
    """Judge the parts in these files, by default all parts, and show the result. Raises the errors of `try`."""
    from gpucourse.learning.try_ import try_parts
    from gpucourse.ui.views.parts import show_tried

    with session.console.watch() as live:
        tried_parts = try_parts(session.context.watched_by(live), exercise, files)
    session.console.show(show_tried(exercise, tried_parts))


def _handle_key(session: Session, key: str, exercise: Exercise, run_request: RunRequest) -> None:
    """Run the command that belongs to this key. Raises the errors of that command."""
    from gpucourse.cli.check import check
    from gpucourse.cli.hint import hint
    from gpucourse.cli.list_ import list_
    from gpucourse.cli.next_ import next_

    if key == "r":
        _run(session, run_request)
    elif key in {"n", "l"}:
        (next_ if key == "n" else list_)(session)
    elif key == "t":
        _judge(session, exercise, ())
    elif key == "c":
        check(session, exercise.id)
    else:
        hint(session, exercise.id)


def _show_place(session: Session, exercise: Exercise, earlier: View | None = None) -> View:
    """Show the keys. Show the progress of the module and of this exercise, and the next step, if they differ from `earlier`.
    Return the progress and the step."""
    from gpucourse.learning.next_ import read_module_signs
    from gpucourse.ui.tables import View
    from gpucourse.ui.views.course import keys, place

    context = session.context
    module, _ = context.catalog.exercise(exercise.id)
    step = session.find_step(exercise.id)
    view = place(module, exercise, read_module_signs(context, module), "" if step == f"gpucourse try {exercise.id}" else step)
    session.console.show(View(blocks=[keys(_KEYS)]) if view == earlier else view._replace(blocks=[*view.blocks, keys(_KEYS)]))
    return view


def _find_lab(session: Session, exercise: Exercise) -> Deployment | None:
    """Return the exercise's lab. Without a lab, return None if a part can be judged, and raise MissingError if not."""
    from gpucourse.runs.resolve import find_deployed_lab

    context = session.context
    if any(part.judge and part.torch for part in exercise.yours):
        with suppress(MissingError):  # reported when a part is judged
            context.judge.start(torch=True)  # while the person writes
    try:
        return find_deployed_lab(context.paths, context.catalog.exercise(exercise.id)[0])
    except MissingError as error:
        if not any(part.judge for part in exercise.yours):
            raise
        session.console.note(f"{error.what}, so only your part is judged; for runs: {error.hint}")
        return None


def _handle_saved(session: Session, exercise: Exercise, run_request: RunRequest, saved_files: tuple[Path, ...]) -> None:
    """Act on saved files: judge new answers, judge a part, or run and check a changed script."""
    from gpucourse.learning.answer import find_new, take_sheet
    from gpucourse.learning.evidence import answers_of
    from gpucourse.learning.watch import describe_syntax_error, list_judged_files
    from gpucourse.ui.views.answers import answers

    context = session.context
    sheet = context.paths.answers(exercise.id)
    if sheet in saved_files:
        earlier_results = answers_of(context, exercise)
        results = take_sheet(context, exercise)
        session.console.show(answers(exercise, results, new_results=find_new(earlier_results, results)))
    judged_files = list_judged_files(context, exercise)
    if parts := [path for path in saved_files if path in judged_files]:
        _judge(session, exercise, parts)
    scripts = tuple(path for path in saved_files if path not in {sheet, *judged_files})
    if scripts and (complaint := describe_syntax_error(scripts)):
        session.console.warn(f"{complaint}; it was not run")
    elif scripts:
        _run(session, run_request)


def _run(session: Session, run_request: RunRequest) -> None:
    """Run the exercise and show its result. Raises the errors of a run."""
    from gpucourse.cli.outcome import present_run
    from gpucourse.runs.resolve import resolve
    from gpucourse.runs.run import run as act

    with session.console.watch() as live:
        context = session.context.watched_by(live)
        result = act(context, resolve(context, run_request))
    if result.followed_run is not None:
        present_run(session, result.followed_run, live)


def can_read_keys(session: Session) -> bool:
    """Return whether the person has a terminal that shows the program's output and can send single keys."""
    try:
        attached = sys.stdin.isatty() and os.isatty(sys.stdin.fileno())
    except (OSError, ValueError):  # no standard input, or one that is not a file
        return False
    console = session.console
    return attached and not session.options.json and console.can_redraw(console.err) and console.can_redraw(console.out)


def read_key(seconds: float) -> str:
    """Return the key that is pressed within this many seconds, or an empty string if no key is pressed. Keys that were typed
    before the call count as well."""
    try:
        with set_terminal(tty.setcbreak, termios.TCSANOW) as keys:
            ready, _, _ = select.select([keys], [], [], seconds)
            data = os.read(keys, 1) if ready else b""
    except termios.error:  # the terminal had already been closed
        return END
    if not ready:
        return ""
    return data.decode("ascii", "replace").lower() if data else END


def drop_keys() -> None:
    """Discard the keys that were typed while the program was busy."""
    with suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
