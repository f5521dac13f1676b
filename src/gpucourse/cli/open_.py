"""The command `open`."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli.session import Session

if TYPE_CHECKING:
    from gpucourse.cli.session import Session
    from gpucourse.context import Context
    from gpucourse.labs.aws.cost import Cost


def open_(
    session: Session,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write it (default: page in the workspace).")] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve it on loopback, for a browser that connects through ssh -L.")
    ] = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Show it in the browser.")] = True,
) -> None:
    """Open a web page of your lessons, progress and runs."""
    from gpucourse.learning.pages.open_ import open_ as act
    from gpucourse.ui.page.build import build
    from gpucourse.ui.page.folder import write_folder

    context = session.context
    folder = (out or context.paths.page).absolute()
    with session.console.watch() as live:
        watched = context.watched_by(live)
        write_folder(folder, build(watched, act(watched), _read_costs(watched)))
    if serve:
        _serve(session, folder, browser=browser)
        return
    first = folder / "index.html"
    session.console.text(f"{first}\n")
    if browser and not _show(context.environ, first.as_uri()):
        session.console.note("no browser was opened: open this file in one, or type gpucourse open --serve")


def _serve(session: Session, folder: Path, *, browser: bool) -> None:
    """Serve the page to browsers until Ctrl-C."""
    from gpucourse.learning.pages.serve import PageServer

    with PageServer(folder) as server:
        session.console.text(f"{server.url}\n")
        tunnel = f"ssh -L {server.port}:127.0.0.1:{server.port} HOST"
        session.console.note(f"Ctrl-C ends it. From another computer: {tunnel}, then open that address there")
        if browser:
            _show(session.context.environ, server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _show(environ: Mapping[str, str], address: str) -> bool:
    """Start a browser, but never one that draws in the terminal; return whether one was started."""
    has_display = sys.platform == "darwin" or environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
    return bool(has_display) and webbrowser.open(address)


def _read_costs(context: Context) -> Cost | None:
    """Read the costs from the ledger only, without calling AWS, so that the page appears at once."""
    if not context.paths.ledger.exists():
        return None
    from gpucourse.labs.aws.cost import cost

    return cost(context, offline=True)
