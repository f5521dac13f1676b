"""The command `cuda`: runs a CUDA program or Triton kernels, and shows their memory accesses and faults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli.flags import parse_seconds
from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode
from gpucourse.model.cuda import CudaReport

if TYPE_CHECKING:
    from gpucourse.learning.cuda import CudaOptions

_REQUESTS_FOR_PICTURES = 20_000
_MAX_DEVICES = 16


class CudaProgram(JsonDocument):
    """A CUDA program that ran on the emulator."""

    file: Path
    report: CudaReport


class CudaPrograms(JsonDocument):
    """The output of `cuda`: one program, or the two that are compared."""

    programs: list[CudaProgram]


def cuda(
    session: Session,
    sources: Annotated[list[Path], typer.Argument(help="A CUDA program, my.cu, or Triton kernels, my.py.", metavar="FILE...")],
    includes: Annotated[list[Path] | None, typer.Option("-I", help="A folder with headers.", metavar="DIR")] = None,
    defines: Annotated[list[str] | None, typer.Option("-D", help="A macro: -D N=1024", metavar="NAME=VALUE")] = None,
    order: Annotated[
        str, typer.Option("--order", help="The order in which threads take turns: 0, 1, 2, 3 or all.", metavar="N|all")
    ] = "0",
    lines: Annotated[bool, typer.Option("--lines", help="Show the source with the counts of each line.")] = False,
    limit: Annotated[str, typer.Option("--limit", help="End the program after this time: 90s, 10m.")] = "60s",
    every: Annotated[bool, typer.Option("--every", help="Watch every block, not a sample.")] = False,
    devices: Annotated[
        int, typer.Option("--devices", help="How many GPUs the program finds.", metavar="N", min=1, max=_MAX_DEVICES)
    ] = 1,
    compare: Annotated[bool, typer.Option("--compare", help="Show two programs side by side.")] = False,
    page: Annotated[bool, typer.Option("--open", help="Write a page with a heat map of the source, and open it.")] = False,
) -> int:
    """Show the accesses and faults of a CUDA program or Triton kernel."""
    from gpucourse.learning.cuda import CudaOptions, list_sources, run_cuda

    arguments = session.options.passed_on
    paths = list_sources(sources[: len(sources) - len(arguments)], compare=compare)
    options = CudaOptions(
        includes=tuple(includes or ()),
        defines=tuple(defines or ()),
        order=order,
        limit_s=parse_seconds(limit, f"gpucourse cuda {paths[0]} --limit 60s", flag="--limit"),
        requests=_REQUESTS_FOR_PICTURES if page else 0,
        every=every,
        devices=devices,
        arguments=arguments,
    )
    programs = [CudaProgram(file=path, report=run_cuda(path, options)) for path in paths]
    _present(session, programs, lines=lines)
    if page:
        for program in programs:
            _open(session, program)
    return max((find_exit_code(program.report) for program in programs), default=ExitCode.DONE)


def watch_cuda(session: Session, source: Path) -> int:
    """Run a program now, and again each time its file or an included file in the same folder is saved. Return the exit code
    after Ctrl-C."""
    from gpucourse.learning.cuda import CudaOptions, list_watched_files
    from gpucourse.learning.watch import read_stamps, wait_for_saves

    files = list_watched_files(source)
    stamps = read_stamps(files)
    options = CudaOptions(arguments=session.options.passed_on)
    session.console.note(f"watching {source}: save it to run it again. Ctrl-C ends.")
    _run_saved(session, source, options)
    try:
        for _ in wait_for_saves(session.look().stop, files, earlier=stamps):
            session.console.note(f"saved: {source.name}")
            _run_saved(session, source, options)
    except KeyboardInterrupt:
        pass
    session.console.note("no longer watching")
    return ExitCode.DONE


def _run_saved(session: Session, source: Path, options: CudaOptions) -> None:
    """Run a program and show its result with the counts of each line, or show why there is none."""
    from gpucourse.errors import ExerciseFailed
    from gpucourse.learning.cuda import run_cuda

    try:
        _present(session, [CudaProgram(file=source, report=run_cuda(source, options))], lines=True)
    except ExerciseFailed as error:
        session.console.error(ExerciseFailed(error.what, hint="change the program and save it"))


def _present(session: Session, programs: list[CudaProgram], *, lines: bool) -> None:
    from gpucourse.learning.cuda import read_source
    from gpucourse.ui.views.cuda import show_comparison, show_cuda

    if len(programs) > 1:
        view = show_comparison([str(program.file) for program in programs], [program.report for program in programs])
    else:
        (program,) = programs
        view = show_cuda(program.file.name, program.report, read_source(program.file) if lines else None)
    session.present(view, CudaPrograms(programs=programs))


def _open(session: Session, program: CudaProgram) -> None:
    """Write the page about a program into the current folder, and show it in the browser."""
    from gpucourse.cli.open_ import show_in_browser
    from gpucourse.learning.cuda import read_source
    from gpucourse.storage import write_bytes
    from gpucourse.ui.page.cuda import render_cuda

    page = Path(f"{program.file.name}.html").absolute()
    write_bytes(page, render_cuda(program.file.name, read_source(program.file), program.report))
    session.console.note(f"wrote {page}")
    if not show_in_browser(os.environ, page.as_uri()):
        session.console.note("no browser was opened: open this file in one")


def find_exit_code(report: CudaReport) -> ExitCode:
    """Return 5 for a fault, 4 for a program that failed, and 0 otherwise."""
    if report.faults:
        return ExitCode.CHECK_FAILED
    return ExitCode.DONE if report.state == "ended" else ExitCode.EXERCISE_FAILED
