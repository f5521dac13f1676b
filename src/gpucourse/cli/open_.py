"""The command `open`: writes the page of the workspace, and opens or serves it."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli.session import Session

if TYPE_CHECKING:
    from gpucourse.cli.session import Session
    from gpucourse.context import Context
    from gpucourse.labs.aws.cost import Cost
    from gpucourse.model.event import Event
    from gpucourse.ui.page.live import LivePages
    from gpucourse.ui.page.markup import File

_NICENESS = 10


def open_(
    session: Session,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write it (default: page in the workspace).")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve it on loopback, so that it shows runs as they happen.")] = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Show it in the browser.")] = True,
) -> None:
    """Open a web page of your lessons, progress and runs."""
    from gpucourse.model.event import stage
    from gpucourse.ui.page.folder import check_folder, write_folder

    context = session.context
    folder = (out or context.paths.page).absolute()
    check_folder(folder)  # before the page is made, which takes a while
    pages = _follow_pages(session, folder) if serve else None  # looks at the files before they are read for the page
    with session.console.watch(brief=True) as live, stage(live, "page", "writing the page"):
        write_folder(folder, _build(context.watched_by(live)))
    if pages:
        _serve(session, folder, pages, browser=browser)
        return
    first = folder / "index.html"
    session.console.text(f"{first}\n")
    if browser and not show_in_browser(context.environ, first.as_uri()):
        session.console.note("no browser was opened: open this file in one, or type gpucourse open --serve")


def _build(context: Context) -> Iterator[File]:
    from gpucourse.learning.pages.open_ import open_ as act
    from gpucourse.ui.page.build import build

    return build(context, act(context), _read_costs(context))


def _follow_pages(session: Session, folder: Path) -> LivePages:
    from gpucourse.model.event import Note
    from gpucourse.ui.page.live import LivePages

    def warn(event: Event) -> None:
        if isinstance(event, Note):
            session.console.warn(event.text)

    context = session.context.watched_by(warn)
    return LivePages(context, folder, partial(_build, context))


def _serve(session: Session, folder: Path, pages: LivePages, *, browser: bool) -> None:
    """Serve the page to browsers until Ctrl-C. The server has a low priority, so that it does not distort the times of runs on
    this computer.
    """
    from gpucourse.learning.pages.serve import PageServer

    with PageServer(folder, pages.follow) as server:
        session.console.text(f"{server.url}\n")
        tunnel = f"ssh -L {server.port}:127.0.0.1:{server.port} HOST"
        session.console.note(f"Ctrl-C ends it. From another computer: {tunnel}, then open that address there")
        if browser:
            show_in_browser(session.context.environ, server.url)
        os.nice(_NICENESS)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    if session.console.err.terminal:
        session.console.err.write("\n")  # the terminal has written ^C


def show_in_browser(environ: Mapping[str, str], address: str) -> bool:
    """Start a browser, but never one that draws in the terminal; return whether one was started."""
    has_display = sys.platform == "darwin" or environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
    return bool(has_display) and webbrowser.open(address)


def _read_costs(context: Context) -> Cost | None:
    """Return the costs from the ledger only, without calling AWS, so that the page appears immediately."""
    if not context.paths.ledger.exists():
        return None
    from gpucourse.labs.aws.cost import cost

    return cost(context, offline=True)
