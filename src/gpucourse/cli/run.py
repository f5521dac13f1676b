"""The command `run`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag, pairs
from gpucourse.cli.session import current
from gpucourse.errors import UsageError

OWN_SCRIPTS = "3.1"  # torchrun, on one node or many


OWN_BATCH = "2.1"  # a file for sbatch


def run(
    exercise: Annotated[
        str | None,
        typer.Argument(help="The number of an exercise: 3.2; not needed with --script.", autocompletion=complete.exercises),
    ] = None,
    arguments: Annotated[list[str] | None, typer.Argument(help="After --: arguments for the script as they are.")] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="On how many nodes.", show_default=False)] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter: --set batch_size=64")] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep", help="Every one of these values, into one record: --sweep batch_size=16,32", show_default=False
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every exercise of a module, on every lab of it: run 4 --all")] = False,
    script: Annotated[Path | None, typer.Option("--script", help="Your own script instead of the exercise's.")] = None,
    extra: Annotated[
        list[Path] | None,
        typer.Option("--with", help="A file or folder that travels along, beside the script.", show_default=False),
    ] = None,
    procs: Annotated[
        int | None,
        typer.Option("--procs", help="Processes a node, for torchrun.", min=1, show_default=False),
    ] = None,
    launcher: Annotated[
        Literal["python", "torchrun", "slurm"] | None,
        typer.Option("--launcher", help="How to start it, where not as the exercise says."),
    ] = None,
    target: Annotated[
        Literal["local", "aws", "hosts"] | None,
        typer.Option("--target", help="On which lab, where several stand.", show_default=False),
    ] = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help="On the lab with this GPU: t4.", show_default=False)] = None,
    timeout: Annotated[str | None, typer.Option("--timeout", help="End it after this long: 90s, 10m.")] = None,
    silence: Annotated[str | None, typer.Option("--silence", help="Name ranks that say nothing for this long: 30s.")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Start it and come back at once.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the exact commands of every node, and stop.")] = False,
    json: JsonFlag = False,
) -> int:
    """Run an exercise on every node at once: push, start, follow, bring home, draw, check."""
    session = current()
    if not (script or detach or dry_run):
        session.easel.set_up()  # at once: most exercises have pictures, and from the ranks' start on no processor is free
    from gpucourse.cli.outcome import show_plan, show_started, tell
    from gpucourse.launch.own_batch import is_batch
    from gpucourse.runs import slurm
    from gpucourse.runs.prepare import Order
    from gpucourse.runs.run import place
    from gpucourse.runs.run import run as act
    from gpucourse.units import parse_duration

    def seconds(flag: str, typed: str | None) -> float | None:
        try:
            return parse_duration(typed) if typed is not None else None
        except ValueError as error:
            raise UsageError(f"{flag}: {error}", hint=f"gpucourse run {exercise} {flag} 10m") from error

    if is_batch(script) and launcher not in {None, "slurm"}:
        raise UsageError(f"{script} is a file for sbatch, not for {launcher}", hint=f"gpucourse run --script {script}")
    exercise, arguments = _home(exercise, arguments or [], script, OWN_BATCH if is_batch(script) else OWN_SCRIPTS)
    order = Order(
        exercise=exercise,
        nodes=nodes,
        settings=pairs(settings or [], f"gpucourse show {exercise} lists its parameters"),
        script=script,
        launcher=launcher or ("slurm" if is_batch(script) else None),
        arguments=tuple(arguments or ()),
        timeout_s=seconds("--timeout", timeout),
        silence_s=seconds("--silence", silence),
        extra=tuple(extra or ()),
        processes=procs,
        target=target,
        gpu=gpu.lower() if gpu else None,
    )
    if sweep is not None or every:
        from gpucourse.cli.run_all import everything
        from gpucourse.cli.run_sweep import sweep as sweep_one

        if sweep is not None and len(sweep) > 1:
            told = f"--sweep is there {len(sweep)} times, and takes one parameter at a time"
            raise UsageError(told, hint=f"gpucourse run {exercise} --sweep {sweep[0]}, then the other one")
        if detach or dry_run or (sweep is not None and every):
            told = "--sweep, --all, --detach and --dry-run exclude each other"
            raise UsageError(told, hint=f"gpucourse run {exercise} --set NAME=VALUE --dry-run shows one run")
        if sweep is None:
            return everything(session, order, json=json)
        return sweep_one(session, order, "".join(sweep), json=json)
    context = session.context
    where = place(context, order)
    session.face.mode(where.mode, where.lacks)
    if slurm.is_session(context.catalog.exercise(exercise)[1], order):
        from gpucourse.cli.run_session import run_session

        return run_session(session, order, detach=detach, dry_run=dry_run, json=json)
    with session.face.watch() as live:
        context.watch = live
        result = act(context, order, detach=detach, dry_run=dry_run)
    if result.record is None:
        return show_plan(session, result.plan, json=json)
    if result.attended is None:
        return show_started(session, result.record, json=json)
    return tell(session, result.attended, live, json=json)


def _home(exercise: str | None, arguments: list[str], script: Path | None, usual: str) -> tuple[str, list[str]]:
    """The exercise that a run belongs to. A script of the learner's own needs none: it goes to the `usual` one, where ranks
    over any number of nodes, or batch jobs, are at home, and the first of its arguments is then no exercise."""
    if exercise is not None and (script is None or re.fullmatch(r"\w+\.\d+", exercise)):
        return exercise, arguments
    if script is None:
        raise UsageError("which exercise?", hint="gpucourse list shows them; or --script FILE for one of your own")
    return usual, [*([exercise] if exercise is not None else []), *arguments]
