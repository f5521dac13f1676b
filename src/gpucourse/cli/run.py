"""The command `run`: turns its options into a request, and starts one run, a sweep, or a whole module."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import (
    ParametersFlag,
    choice_option,
    gpu_option,
    parse_seconds,
    read_settings,
)
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, ExerciseFailed, ExitCode, UsageError
from gpucourse.labs.target import find_target, list_targets
from gpucourse.model.launchers import find_traits, list_choices, list_launchers
from gpucourse.outside.names import printable

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.launch.own_batch import ScriptKind
    from gpucourse.model.deployment import Deployment
    from gpucourse.model.manifest import Exercise
    from gpucourse.runs.resolve import ResolvedRun, RunRequest
    from gpucourse.runs.run import RunResult

OWN_SCRIPTS = "3.1"  # torchrun, on one node or many
OWN_BATCH = "2.1"  # a file for sbatch
CUDA_LAUNCHER = "python"  # one process on each node
_OF_CODE = ("PYTHON", "LD_", "DYLD_", "BASH_ENV")  # bash reads the file that BASH_ENV names before it runs a file for sbatch


def run(
    session: Session,
    exercise: Annotated[
        str | None,
        typer.Argument(help="The number of an exercise: 3.2; not needed with --script.", autocompletion=complete.exercises),
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="After --: arguments for the script, passed on unchanged.")
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="The number of nodes.")] = None,
    settings: ParametersFlag = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option("--sweep", help="Run once for each value: --sweep batch_size=16,32", autocompletion=complete.parameters),
    ] = None,
    is_whole_module: Annotated[
        bool, typer.Option("--all", help="Every exercise of a module, on each of its labs: run 4 --all")
    ] = False,
    script: Annotated[Path | None, typer.Option("--script", help="Your own script instead of the exercise's.")] = None,
    python_module: Annotated[
        str | None, typer.Option("--module", help="Like --script, but started as python -m does: --module package.train")
    ] = None,
    extra: Annotated[list[Path] | None, typer.Option("--with", help="A file or folder to upload with the script.")] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            help="A variable for every rank: --env NCCL_DEBUG=INFO; --env NAME passes on your own value without storing it.",
        ),
    ] = None,
    torchrun: Annotated[
        str | None, typer.Option("--torchrun", help="torchrun's own options: --torchrun '--max-restarts=2'")
    ] = None,
    checks: Annotated[
        Path | None, typer.Option("--checks", help="With --script: a YAML file with checks, as in a manifest.")
    ] = None,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Run under PyTorch's profiler, to see where the time goes. The run earns no points."),
    ] = False,
    procs: Annotated[int | None, typer.Option("--procs", help="Processes per node, for torchrun.", min=1)] = None,
    launcher: Annotated[
        str | None, choice_option("--launcher", "The launcher, instead of the exercise's own.", list_choices())
    ] = None,
    target: Annotated[
        str | None, choice_option("--target", "On which target, if several labs are deployed.", list_targets())
    ] = None,
    gpu: Annotated[str | None, gpu_option("On the lab with this GPU")] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option("--slurm", help="On a Slurm cluster: a setting or an option of sbatch for this run: --slurm qos=long"),
    ] = None,
    max_gpu_hours: Annotated[
        float | None,
        typer.Option(
            "--max-gpu-hours",
            min=0,
            help="Submit no job if all runs on Slurm clusters together may need more GPU hours than this.",
        ),
    ] = None,
    timeout: Annotated[str | None, typer.Option("--timeout", help="Stop it after this time: 90s, 10m.")] = None,
    silence: Annotated[
        str | None, typer.Option("--silence", help="Report ranks that print nothing for this long: 30s.")
    ] = None,
    predict: Annotated[
        str | None,
        typer.Option(
            "--predict",
            help="What the run will measure, recorded before it starts: --predict NAME=VALUE",
            autocompletion=complete.predictions,
        ),
    ] = None,
    no_predict: Annotated[bool, typer.Option("--no-predict", help="Do not ask for a prediction.")] = False,
    expect_red: Annotated[
        str | None,
        typer.Option(
            "--expect-red",
            help="After an edit: the name of the check that will fail. Without a name, run asks for it.",
            autocompletion=complete.checks,
        ),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Start the run, and do not follow it.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the exact commands of every node, and stop.")] = False,
) -> int:
    """Run an exercise on every node, and check its results."""
    from gpucourse.course.own_checks import read_own_checks
    from gpucourse.launch.environment import read_variables
    from gpucourse.launch.own_batch import check_script, read_kind
    from gpucourse.launch.torchrun import read_options
    from gpucourse.model.slurm_settings import read_words
    from gpucourse.runs.resolve import RunRequest

    script = _find_module(python_module, script, profile=profile) if python_module is not None else script
    files = [str(path.absolute()) for path in (script, *(extra or ())) if path is not None]
    _refuse_bytes(exercise or "", *(arguments or ()), *files)
    kind = read_kind(script) if script is not None else None
    if profile and kind is not None and kind.is_cuda:
        raise UsageError("--profile is for a Python script", hint=f"gpucourse cuda {script} shows what its kernels do")
    exercise, arguments, launcher = _choose_script(session, exercise, arguments or [], script, kind, launcher)
    environment, handed_on = read_variables(env or (), os.environ)
    if script is None:
        _refuse_script_options(checks, *environment, *handed_on)
    read_options(torchrun or "")  # raises an error before the lab or the exercise is looked up
    run_request = RunRequest(
        exercise=exercise,
        nodes=nodes,
        settings=read_settings(settings or [], f"gpucourse show {exercise} lists its parameters"),
        script=script,
        kind=kind,
        python_module=python_module or "",
        launcher=launcher,
        arguments=tuple(arguments),
        timeout_s=parse_seconds(timeout, f"gpucourse run {exercise} --timeout 10m", flag="--timeout"),
        silence_s=parse_seconds(silence, f"gpucourse run {exercise} --silence 10m", flag="--silence"),
        extra=tuple(extra or ()),
        profile=profile,
        environment=environment,
        handed_on=handed_on,
        torchrun=torchrun or "",
        checks=read_own_checks(checks) if checks is not None else (),
        processes=procs,
        target=target,
        gpu=gpu,
        slurm=read_words(slurm or ()),
        max_gpu_hours=max_gpu_hours,
    )
    _check_subject(session, exercise, script, is_whole_module=is_whole_module)
    several = is_whole_module or sweep is not None
    if predict is not None or expect_red is not None:
        _refuse_forecast(run_request, predict, expect_red, several=several, no_predict=no_predict)
    if script is not None:
        check_script(script)
    if not several:
        run_request = _add_forecast(session, run_request, predict, expect_red, ask=not (no_predict or detach or dry_run))
        return _run_one(session, run_request, detach=detach, dry_run=dry_run)
    _refuse_mixture(
        "EXERCISE" if is_whole_module else exercise,
        sweep or [],
        mixed=detach or dry_run or (sweep is not None and is_whole_module),
    )
    return _run_sweep(session, run_request, sweep[0]) if sweep else _run_all(session, run_request)


def _run_one(session: Session, run_request: RunRequest, *, detach: bool, dry_run: bool) -> int:
    """Do one run, and return its exit code. Raises the errors of `runs.run.run`, and CheckFailed."""
    from gpucourse.cli.outcome import Plan, PlanDocument, present_run
    from gpucourse.cli.output import OneRun
    from gpucourse.runs.prepare import rehearse
    from gpucourse.runs.resolve import locate_run
    from gpucourse.runs.run import run as act
    from gpucourse.ui.views.plan import launch
    from gpucourse.ui.views.result import show_started

    context = session.context
    resolved = _resolve(context, run_request)
    location = locate_run(context, resolved)
    session.console.mode(location.mode, location.lacks)
    if dry_run:
        with session.console.watch() as live:
            plan = rehearse(context.watched_by(live), resolved)
        document = PlanDocument.build(plan, script=plan.own_script or plan.script)
        session.present(launch(plan), Plan(plan=document))
        return ExitCode.DONE
    if resolved.launcher.is_terminal:
        from gpucourse.cli.run_session import run_session

        return run_session(session, resolved, detach=detach)
    with session.console.watch() as live:
        result = act(context.watched_by(live), resolved, detach=detach)
    if result.followed_run is None:
        session.present(show_started(result.record), OneRun.build(run=result.record))
        return ExitCode.DONE
    return present_run(session, result.followed_run, live)


def _resolve(context: Context, run_request: RunRequest) -> ResolvedRun:
    """Return the request, together with everything that it refers to. If the lab lacks something according to its record,
    examine the lab again first.
    """
    from gpucourse.model.deployment import Deployment
    from gpucourse.runs.resolve import resolve

    resolved = resolve(context, run_request)
    if not (isinstance(resolved.deployment, Deployment) and resolved.deployment.lacks):
        return resolved
    find_target(resolved.deployment.target).refresh(context, resolved.deployment)
    return resolve(context, run_request)


def _run_sweep(session: Session, run_request: RunRequest, assignment: str) -> int:
    """Run an exercise with each value of a parameter, and return the exit code. Raises ExerciseFailed or CheckFailed."""
    from gpucourse.cli.outcome import SweepOutput, show_line
    from gpucourse.runs import parameter_sweep as act
    from gpucourse.runs.resolve import locate_run
    from gpucourse.ui.views.many import sweep as view

    context = session.context
    parameter, values = act.values_of(context.catalog, run_request, assignment)
    location = locate_run(context, _resolve(context, run_request))
    session.console.mode(location.mode, location.lacks)

    def run_point(value: object, number: int, start_run: Callable[[Context], RunResult]) -> RunResult:
        return show_line(session, f"{number} of {len(values)}, {parameter.name}={value}", start_run)

    result = act.sweep(context, run_request, parameter, values, run_point)
    place = None if result.own_script else run_request.exercise
    session.present(view(result, whole=session.console.verbose), SweepOutput.build(result), place=place)
    if (error := act.make_failure(result.sweep)) is not None:
        raise error
    failed_points = [point for point in result.sweep.points if point.verdict in {"failed", "error"}]
    if failed_points:
        subject = run_request.script.name if run_request.script else run_request.exercise
        words = f"checks did not pass for {parameter.name}={', '.join(str(point.value) for point in failed_points)}"
        raise CheckFailed(words, hint=f"gpucourse check {quote(subject)} --run {failed_points[0].run}")
    return ExitCode.DONE


def _run_all(session: Session, run_request: RunRequest) -> int:
    """Run every exercise of a module on each of its deployed labs, and return the exit code. Raises ExerciseFailed or
    CheckFailed."""
    from gpucourse.cli.outcome import ModuleRuns, show_line
    from gpucourse.runs.run_module import labs
    from gpucourse.runs.run_module import run_all as act
    from gpucourse.ui.views.many import module_runs as view

    module = session.require_module(run_request.exercise)
    context = session.context
    first = labs(context.paths, module, run_request)[0]
    session.console.mode(first.mode, first.lacks)
    total = len(module.exercises)

    def run_exercise(exercise: Exercise, lab: Deployment, start_run: Callable[[Context], RunResult]) -> RunResult:
        number = [item.id for item in module.exercises].index(exercise.id) + 1
        return show_line(session, f"{number} of {total}, {lab.stack}, {exercise.id} {exercise.title}", start_run)

    steps = act(context.paths, module, run_request, run_exercise)
    session.present(view(steps), ModuleRuns(steps=list(steps)), place=module.id)
    failures = [f"{step.exercise} on {step.lab}" for step in steps if not step.good]
    if not failures:
        return ExitCode.DONE
    has_run_all = all(step.state in {"succeeded", "skipped"} for step in steps)
    words = f"{len(failures)} of {len(steps)} did not pass: {', '.join(failures)}"
    raise (CheckFailed if has_run_all else ExerciseFailed)(words, hint="gpucourse runs")


def _refuse_script_options(checks: Path | None, *variables: str) -> None:
    """Raise UsageError if an exercise is run with the learner's own checks, or with a variable that would make other code
    run."""
    if checks is not None:
        raise UsageError(
            "--checks is for a script of your own: an exercise has its own checks",
            hint="gpucourse run --script FILE --checks FILE",
        )
    for name in variables:
        if name.startswith(_OF_CODE):
            raise UsageError(
                f"--env {name} changes which code runs, but an exercise runs its own code",
                hint="it is for a script of your own: --script FILE",
            )


def _refuse_forecast(
    run_request: RunRequest, predict: str | None, expect_red: str | None, *, several: bool, no_predict: bool
) -> None:
    """Raise UsageError for --predict or --expect-red with several runs or a learner's own script, and for --predict with
    --no-predict."""
    option, value = ("--predict", predict) if predict is not None else ("--expect-red", expect_red)
    exercise = run_request.exercise
    if several:
        raise UsageError(f"{option} is for a single run", hint=f"gpucourse run {exercise} {option} {value}")
    if predict is not None and no_predict:
        raise UsageError("--predict and --no-predict cannot be combined", hint=f"gpucourse run {exercise} --no-predict")
    if run_request.script is not None:
        raise UsageError(f"{option} is for an exercise, not for a script of your own", hint="gpucourse list shows them")


def _add_forecast(
    session: Session, run_request: RunRequest, predict: str | None, expect_red: str | None, *, ask: bool
) -> RunRequest:
    """Return the request with the learner's forecast: the check that they expect to fail, and the prediction that they typed as
    an option or at the prompt. Raises UsageError or UnknownName."""
    from gpucourse.cli.prediction import ask_prediction, ask_red_check, read_prediction
    from gpucourse.runs.mutations import check_expectation

    _, exercise = session.context.catalog.exercise(run_request.exercise)
    if expect_red is not None:
        check_expectation(session.context, exercise, expect_red)
        expect_red = expect_red or ask_red_check(session, run_request)
    prediction = None
    if predict is not None:
        prediction = read_prediction(exercise, predict)
    elif ask and expect_red is None:
        prediction = ask_prediction(session, run_request)
    return replace(run_request, prediction=prediction, expected_red=expect_red)


def _find_module(name: str, script: Path | None, *, profile: bool) -> Path:
    """Return the file of the Python module that --module names. Raises UsageError if there is none, or if --script or
    --profile was typed.
    """
    from gpucourse.launch.neighbours import find_module

    if script is not None:
        is_python = all(part.isidentifier() for part in name.split("."))  # 3 is a module of the course, and not of Python
        choice = f"--module {printable(name, 80)}" if is_python else f"--script {quote(str(script))}"
        raise UsageError("--script and --module cannot be combined", hint=f"gpucourse run {choice}")
    if profile:
        raise UsageError("--profile is for a script, not for --module", hint="gpucourse run --script FILE --profile")
    return find_module(name, Path.cwd())


def _refuse_bytes(*words: str) -> None:
    """Raise UsageError if a word is not UTF-8 text, because the run's files cannot contain it."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"{printable(word)}: not text in UTF-8",
                hint="rename the file; put a value into an environment variable NAME, and pass it on with --env NAME",
            ) from error


def _choose_script(
    session: Session,
    exercise: str | None,
    arguments: list[str],
    script: Path | None,
    kind: ScriptKind | None,
    launcher: str | None,
) -> tuple[str, list[str], str | None]:
    """Return the exercise of a run, its arguments and its launcher. Raises UsageError if the typed words do not fit together.

    A learner's own script does not replace an exercise; it only uses the lab and the limits of an exercise. Every word that is
    not an option is an argument of the script.
    """
    if script is None or kind is None:
        if exercise is None:
            raise UsageError("which exercise?", hint="gpucourse list shows them; or --script FILE for a script of your own")
        if Path(exercise).suffix in {".py", ".sh", ".sbatch", ".cu"}:
            hint = f"a script of your own: gpucourse run --script {quote(exercise)}"
            raise UsageError(f"{exercise} is a file, not an exercise", hint=hint)
        if len(arguments) > len(session.options.passed_on):
            raise UsageError(
                f"run accepts one exercise, but {printable(arguments[0], 80)!r} was typed, too",
                hint=f"gpucourse run {exercise}; a parameter: gpucourse run {exercise} --set NAME=VALUE",
            )
        return exercise, arguments, launcher
    words = [*([exercise] if exercise is not None else []), *arguments]
    if exercise is not None and len(words) > len(session.options.passed_on) and re.fullmatch(r"\w+\.\d+", exercise):
        raise UsageError(
            f"{script.name} cannot run in place of {exercise}: the exercise runs your copy of its own script, under exercises/",
            hint=f"edit that copy, then gpucourse run {exercise}; a script of your own: gpucourse run --script {script}",
        )
    batch = kind.is_batch or (kind.is_shell and launcher is not None and find_traits(launcher).takes_batch_files)
    if batch:
        launchers = list_launchers(lambda traits: traits.takes_batch_files)
        if launcher not in {None, *launchers}:
            raise UsageError(f"{script} is a file for sbatch, not for {launcher}", hint=f"gpucourse run --script {script}")
        launcher = launcher or launchers[0]
    if kind.is_cuda:
        launcher = launcher or CUDA_LAUNCHER
    usual = OWN_BATCH if batch else OWN_SCRIPTS
    modules = session.context.catalog.iterate(usual.partition(".")[0])  # each is read only when its turn comes
    exercises = (item.id for module in modules for item in module.exercises)
    first = next(exercises)
    return usual if first == usual or usual in exercises else first, words, launcher


def _check_subject(session: Session, exercise: str, script: Path | None, *, is_whole_module: bool) -> None:
    """Raise UsageError for a module without --all, and for a learner's own script with --all. Raise UnknownName for an exercise
    or module that the course does not have."""
    if is_whole_module and script is not None:
        raise UsageError(
            "--all is for the exercises of a module, not for a script of your own",
            hint=f"gpucourse run --script {quote(str(script))}",
        )
    if is_whole_module:
        return
    if exercise in session.look().catalog.module_ids:
        raise UsageError(
            f"{exercise} is a module",
            hint=f"gpucourse run {exercise} --all, or one of its exercises: gpucourse show {exercise}",
        )
    session.require_exercise(exercise)


def _refuse_mixture(exercise: str, sweep: list[str], *, mixed: bool) -> None:
    """Raise UsageError for more than one --sweep, and for combinations of --sweep, --all, --detach and --dry-run."""
    if len(sweep) > 1:
        raise UsageError(
            f"--sweep accepts one parameter at a time, but was typed {len(sweep)} times",
            hint=f"gpucourse run {exercise} --sweep {sweep[0]}, then the other one",
        )
    if mixed:
        raise UsageError(
            "--sweep, --all, --detach and --dry-run cannot be combined",
            hint=f"gpucourse run {exercise} --set NAME=VALUE --dry-run shows one run",
        )
