"""The command `open`."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.aws.money.cost import Cost


def open_(
    ctx: typer.Context,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write it (default: page in the workspace).", show_default=False)
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Show it in the browser.")] = True,
) -> int:
    """A page to look at: lessons, progress, every run."""
    from gpucourse.learning.pages.open_ import open_ as act
    from gpucourse.ui.page.build import build
    from gpucourse.ui.page.folder import write_folder

    session = session_of(ctx)
    context = session.context
    folder = (out or context.paths.page).absolute()
    with session.console.watch() as live:
        context.watch = live
        write_folder(folder, build(context, act(context), _read_costs(context)))
    first = folder.joinpath("index.html")
    session.console.text(f"{first}\n")
    if browser and not (_has_display(context.environ) and webbrowser.open(first.as_uri())):
        session.console.note("there is no browser here: open that file in one, or type gpucourse open --serve")
    return ExitCode.DONE


def _read_costs(context: Context) -> Cost | None:
    """What the ledger holds; nobody is asked, so that the page is there at once."""
    if not context.paths.ledger.exists():
        return None
    from gpucourse.labs.aws.money.cost import cost

    return cost(context, offline=True)


def _has_display(environ: Mapping[str, str]) -> bool:
    """Whether a browser has a screen to open on; a browser that draws in the terminal is not started."""
    return sys.platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
