"""Reports and pictures in a real browser: hostile names, logs and answers run nothing and fetch nothing."""

from __future__ import annotations

import http.server
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from gpucourse.figures.plots import draw
from gpucourse.model.manifest import Plot, Series
from gpucourse.model.report import Chapter, Grid, Picture, Report, Saying
from gpucourse.report import html
from gpucourse.ui.live import Live
from gpucourse.ui.out import Out
from gpucourse.ui.screen import capture
from gpucourse.ui.tables import View, facts
from tests.parts import need
from tests.waiting import STUCK_S

pytestmark = pytest.mark.system

OWNED = 'data-owned="1"'
"""How the browser writes the mark down that a script of the page has made."""


class _Counting(http.server.BaseHTTPRequestHandler):
    paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.paths.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""


@pytest.fixture
def address() -> Iterator[str]:
    """A server on loopback that remembers who asked it."""
    _Counting.paths.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Counting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def hostile(address: str) -> str:
    """Text that asks the server, and marks the page, wherever it is taken for mark-up."""
    mark = "document.documentElement.setAttribute('data-owned','1')"
    return (
        f'"\'></text></title></style>]]><script>{mark};fetch("{address}/script")</script>'
        f'<img src="{address}/image" onerror="{mark}"><image href="{address}/svg"/><iframe src="{address}/frame"></iframe>'
        f'<link rel="stylesheet" href="{address}/style"><meta http-equiv="refresh" content="0;url={address}/refresh">'
        f"<style>@import url({address}/import)</style><svg onload=\"{mark};fetch('{address}/onload')\"></svg>"
    )


def without_leaving(markup: str) -> str:
    """The same without the tag that sends the browser to another page: no policy keeps it from that."""
    return markup.replace("http-equiv", "data-was")


def dump_dom(page: Path, folder: Path) -> str:
    """The document as the browser has it after its scripts ran."""
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-component-update"]
    done = subprocess.run(
        [need("chromium"), *words, f"--user-data-dir={folder / 'profile'}", "--timeout=3000", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=STUCK_S,
        check=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
    )
    return done.stdout


def picture(folder: Path, text: str) -> Picture:
    plot = Plot.model_construct(
        file="peak", title=text, kind="bar", rows="metrics.rows", x="gpu", by=None, x_title=text, y_title=text, log_x=False,
        log_y=False, ideal=False, ideal_key=None, ideal_label=text,
        series=(Series.model_construct(key="tflops", label=text, low=None, high=None),),
    )  # fmt: skip
    rows = [{"gpu": text, "tflops": 41.2}, {"gpu": "L4", "tflops": 58.9}]
    png, svg = draw(plot, {"rows": rows}, subtitle=text, folder=folder)
    return Picture(title=text, png=png.read_bytes(), svg=svg.read_bytes())


def report(folder: Path, text: str) -> bytes:
    grid = Grid(title=text, columns=(text, "TFLOP/s"), rows=((text, "41.2"),), numeric=(False, True), note=text)
    saying = Saying(title=text, question="why", text=text)
    chapter = Chapter(
        id="compute", title=text, text=text, grids=(grid,), pictures=(picture(folder, text),), sayings=(saying,),
        sources=(text,), missing=(text,),
    )  # fmt: skip
    return html.render(
        Report(title=text, author=text, made=text, mode="local", subjects=(text,), chapters=(chapter,), missing=(text,))
    )


def test_the_browser_runs_and_fetches_what_is_taken_for_markup(address: str, tmp_path: Path) -> None:
    """The other tests can fail: without escaping and policy the same text does both."""
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>x</title><body>{without_leaving(hostile(address))}")
    assert OWNED in dump_dom(page, tmp_path)
    assert _Counting.paths


def test_a_report_with_hostile_text_runs_and_fetches_nothing(address: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_bytes(report(tmp_path, hostile(address)))
    shown = dump_dom(page, tmp_path)
    assert "Not here yet" in shown
    assert OWNED not in shown
    assert _Counting.paths == []


def test_where_escaping_failed_the_policy_holds(address: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    markup = without_leaving(hostile(address)).encode()
    page.write_bytes(report(tmp_path, "calm").replace(b"</body>", markup + b"</body>"))
    assert OWNED not in dump_dom(page, tmp_path)
    assert _Counting.paths == []


def test_a_report_is_styled_and_shows_its_pictures(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    border = b"getComputedStyle(document.querySelector('h2')).borderTopWidth"
    probe = b"<script>onload=()=>document.title=" + border + b"+' '+document.images[0].naturalWidth</script>"
    allowed = report(tmp_path, "calm").replace(b"script-src 'none'", b"script-src 'unsafe-inline'")
    page.write_bytes(allowed.replace(b"</body>", probe + b"</body>"))
    title = dump_dom(page, tmp_path).partition("<title>")[2].partition("</title>")[0]
    assert title.startswith("2px ")
    assert int(title.removeprefix("2px ")) > 0


@pytest.mark.parametrize("name", ["plot", pytest.param("screen", marks=pytest.mark.slow)])
def test_a_picture_opened_by_itself_runs_and_fetches_nothing(address: str, tmp_path: Path, name: str) -> None:
    text = hostile(address)
    page = tmp_path / f"{name}.svg"
    if name == "plot":
        page.write_bytes(picture(tmp_path, text).svg)
    else:
        with (tmp_path / "err").open("w") as err:
            live = Live(Out(err), colour=False, moving=False, quiet=True)
            view = View(title=text, blocks=(facts([(text, text)]),), footer=(text,))
            capture(page, command=text, live=live, view=view, mode="local")
    shown = dump_dom(page, tmp_path)
    assert "<svg" in shown
    assert OWNED not in shown
    assert _Counting.paths == []
