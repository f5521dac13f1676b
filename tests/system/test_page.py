"""The page of a workspace, reports and pictures in a real browser: they work, and hostile text does nothing."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from gpucourse.figures.plots import draw
from gpucourse.learning.pages.open_ import open_
from gpucourse.learning.pages.serve import PageServer
from gpucourse.model.manifest import Plot, Series
from gpucourse.model.record import RunRecord
from gpucourse.model.report import Chapter, Grid, Picture, Report, Saying
from gpucourse.report import html
from gpucourse.ui.live import Live
from gpucourse.ui.out import Out
from gpucourse.ui.page.build import build
from gpucourse.ui.page.folder import write_folder
from gpucourse.ui.page.live import LivePages
from gpucourse.ui.screen import capture
from gpucourse.ui.tables import View, facts
from gpucourse.workspace import runs
from tests.chromium import Chromium, Tab
from tests.learning import FOLDER, MANIFEST, METRICS, Learning
from tests.waiting import until

pytestmark = pytest.mark.system

PLOT = """    plots:
      - {file: springs, title: Springs, kind: line, rows: metrics.springs, x: litres, x_title: litres, y_title: "%",
         series: [{key: busy_percent, label: busy}]}
"""
CHECKS = "    checks:\n"
SPRINGS = [{"litres": litres, "busy_percent": percent} for litres, percent in ((9.5, 40), (100.0, 78), (20.0, 96))]


class _Counting(http.server.BaseHTTPRequestHandler):
    paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.paths.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Yield the address of a server on loopback that counts requests."""
    _Counting.paths.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Counting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """Yield one browser for all tests. Each test opens its own tab."""
    with Chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Learning:
    return Learning(tmp_path, monkeypatch, capfd)


@pytest.fixture
def folder(learning: Learning, tmp_path: Path) -> Path:
    """Return a page with two runs of one exercise."""
    head = "# yaml-language-server: $schema=../module.schema.json\n"
    learning.put(f"modules/{FOLDER}/module.yaml", head + MANIFEST.replace(CHECKS, PLOT + CHECKS, 1))
    learning.put(f"modules/{FOLDER}/lesson.md", "# Rivers\n\n## Rain\n\nClouds give it.\n\n## Snow\n\nWinter gives it.\n")
    for depth in (10, 25):
        record = learning.record("1.1", METRICS | {"springs": SPRINGS}, parameters={"depth": depth})
        learning.context.paths.run("1.1", record.id).rank_log("node0", 0).write_text("loss 2.5\nloss 1.5\nthe end\n")
    context = learning.open_context()
    write_folder(tmp_path / "page", build(context, open_(context)))
    return tmp_path / "page"


def run_page(folder: Path) -> str:
    return max(folder.glob("runs/1.1/*.html")).as_uri()


def is_too_wide(tab: Tab) -> bool:
    """Return whether the page itself, and not only a table in it, scrolls sideways."""
    wide: bool = tab.evaluate("document.documentElement.scrollWidth > innerWidth")
    return wide


def make_hostile(address: str) -> str:
    """Return text that would send requests to the server and mark the page if it were treated as mark-up."""
    mark = "document.documentElement.setAttribute('data-owned','1')"
    return (
        f'"\'></text></title></style>]]><script>{mark};fetch("{address}/script")</script>'
        f'<img src="{address}/image" onerror="{mark}"><image href="{address}/svg"/><iframe src="{address}/frame"></iframe>'
        f'<link rel="stylesheet" href="{address}/style"><meta http-equiv="refresh" content="0;url={address}/refresh">'
        f"<style>@import url({address}/import)</style><svg onload=\"{mark};fetch('{address}/onload')\"></svg>"
    )


def without_leaving(markup: str) -> str:
    """Return the markup without the tag that sends the browser to another page, which no policy forbids."""
    return markup.replace("http-equiv", "data-was")


def is_owned(tab: Tab) -> bool:
    """Return whether a script in the hostile text has run."""
    owned: bool = tab.evaluate("document.documentElement.hasAttribute('data-owned')")
    return owned


def draw_picture(folder: Path, text: str) -> Picture:
    plot = Plot.model_construct(
        file="peak", title=text, kind="bar", rows="metrics.rows", x="gpu", by=None, x_title=text, y_title=text, log_x=False,
        log_y=False, ideal=False, ideal_key=None, ideal_label=text,
        series=(Series.model_construct(key="tflops", label=text, low=None, high=None),),
    )  # fmt: skip
    rows = [{"gpu": text, "tflops": 41.2}, {"gpu": "L4", "tflops": 58.9}]
    png, svg = draw(plot, {"rows": rows}, subtitle=text, folder=folder)
    return Picture(title=text, png=png.read_bytes(), svg=svg.read_bytes())


def make_report(folder: Path, text: str) -> bytes:
    grid = Grid(title=text, columns=(text, "TFLOP/s"), rows=((text, "41.2"),), numeric=(False, True), note=text)
    saying = Saying(title=text, question="why", text=text)
    chapter = Chapter(
        id="compute", title=text, text=text, grids=(grid,), pictures=(draw_picture(folder, text),), sayings=(saying,),
        sources=(text,), missing=(text,),
    )  # fmt: skip
    return html.render(
        Report(title=text, author=text, made=text, mode="local", subjects=(text,), chapters=(chapter,), missing=(text,))
    )


def test_pages_open_filter_sort_and_compare_without_complaint(folder: Path, browser: Chromium) -> None:
    tab = browser.open((folder / "index.html").as_uri())
    assert tab.texts("h1") == ["The course"]
    tab.go((folder / "book.html").as_uri())
    tab.type_into("#search", "winter")
    assert tab.texts("li[data-words] a") == ["Snow"]
    assert tab.texts("#hits") == ["1 place"]
    tab.go(run_page(folder))
    litres = "table.sortable td:first-child"
    springs = [text for text in tab.texts(litres) if text[0].isdigit()]
    assert springs == ["9.5", "100.0", "20.0"]
    tab.evaluate("document.querySelector('table.sortable th button').focus()")
    tab.press("Enter", "\r")
    assert [text for text in tab.texts(litres) if text[0].isdigit()] == ["9.5", "20.0", "100.0"]
    assert tab.evaluate("document.querySelector('table.sortable th').ariaSort") == "ascending"
    tab.type_into("#log-filter", "LOSS")
    assert tab.texts("#log > span") == ["[n0 r0] loss 2.5", "[n0 r0] loss 1.5"]
    assert tab.texts("#log-hits") == ["2 of 3 lines"]
    tab.evaluate("document.querySelector('.plot .p').dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))")
    assert tab.texts("figure.chart .value") == ["busy: 40 at 9.5"]
    tab.go((folder / "runs.html").as_uri())
    tab.type_into("input.filter", "depth=25")
    assert len(tab.texts("table.filtered tbody tr")) == 1
    tab.go((folder / "compare" / "1.1.html").as_uri())
    assert "25 +150 %" in tab.texts("table.compare td")
    tab.click("#only-differences")
    assert tab.texts("table.compare tr:not(.group) th[scope=row]") == ["depth"]
    tab.click("input.base-run[value='2']")
    assert "10 -60 %" in tab.texts("table.compare td")
    assert tab.complaints() == []


@pytest.fixture
def record(learning: Learning) -> RunRecord:
    """Return a run in progress."""
    return learning.record("1.1", state="running", world_size=2)


@pytest.fixture
def url(learning: Learning, record: RunRecord) -> Iterator[str]:
    """Serve the page of the workspace as `open --serve` does; yield the address of its folder."""
    context = learning.open_context()
    folder = learning.root / "page"
    write_folder(folder, build(context, open_(context)))
    pages = LivePages(context, folder, lambda: build(context, open_(context)), look_s=0)
    with PageServer(folder, pages.follow, event_s=0.05) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.url.removesuffix("index.html")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_served_page_follows_a_run_to_its_end(
    learning: Learning, record: RunRecord, url: str, address: str, browser: Chromium, width: int, dark: bool
) -> None:
    tab = browser.open(f"{url}index.html", width=width, dark=dark)
    files = learning.context.paths.run("1.1", record.id)
    until(lambda: tab.texts("#under-way a"), "the run is on every page")
    assert not is_too_wide(tab)
    tab.go(tab.evaluate("document.querySelector('#under-way a').href"))
    until(lambda: tab.texts("#log > span") == ["[n0 r0] found it"], "the first line")
    files.rank_log("node1", 1).write_text(f"step 1\nWARNING:root:low\nValueError: {make_hostile(address)}\n")
    until(lambda: len(tab.texts("#log > span")) == 4, "new lines")
    assert [int(text.split()[-1]) for text in tab.texts("#log-tools label:has(.log-level)")] == [1, 1, 2]
    tab.click("#log-ranks input[value='1']")
    assert tab.texts("#log > span") == ["[n0 r0] found it"]
    tab.click("#log-error")
    assert tab.texts("#log > .here")[0].startswith("[n1 r1] ValueError")
    colour = "getComputedStyle(document.querySelector('#log .r{} b')).color"
    assert tab.evaluate(colour.format(0)) != tab.evaluate(colour.format(1))
    with files.rank_log("node1", 1).open("a") as log:
        log.writelines(f"line {number} {'of a flood ' * 9}\n" for number in range(100_000))
    until(lambda: tab.texts("#log > span")[-1].startswith("[n1 r1] line 99999"), "the end of a flood")
    assert any("left out here" in text for text in tab.texts("#log > .gap"))
    assert not is_too_wide(tab)
    tab.click("input.log-level[value=info]")
    record.state = "succeeded"
    runs.save(learning.context.paths, record)
    tab.wait_until_loaded()
    assert (tab.texts("#under-way"), "succeeded" in tab.texts("dd")) == ([], True)
    assert not any("found it" in text for text in tab.texts("#log > span")), "the levels are still as they were set"
    assert not is_owned(tab)
    assert (tab.complaints(), _Counting.paths) == ([], [])


def read_ticks(tab: Tab) -> list[str]:
    return tab.texts(".ticks-x text")


def test_charts_zoom_in_and_out_and_show_other_runs(folder: Path, browser: Chromium) -> None:
    tab = browser.open(run_page(folder), width=1280)
    whole = read_ticks(tab)
    tab.evaluate("document.querySelector('figure.chart').scrollIntoView()")
    box = tab.evaluate(
        "(box => [box.x, box.y, box.width, box.height])(document.querySelector('svg[data-x]').getBoundingClientRect())"
    )
    for kind, share, count in (("mousePressed", 0.5, 1), ("mouseMoved", 0.7, 0), ("mouseReleased", 0.7, 1)):
        place = {"x": box[0] + share * box[2], "y": box[1] + share * box[3]}
        tab.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=count, **place)
    part = read_ticks(tab)
    assert part != whole
    tab.press("Escape")
    assert read_ticks(tab) == whole
    tab.press("+", "+")
    assert read_ticks(tab) not in (whole, part)
    tab.evaluate("document.querySelector('svg[data-x]').dispatchEvent(new MouseEvent('dblclick'))")
    assert read_ticks(tab) == whole
    marks = len(tab.texts(".area g:not(.off) > circle"))
    tab.click("input.show-run")
    assert len(tab.texts(".area g:not(.off) > circle")) == 2 * marks
    tab.go((folder / "compare" / "1.1.html").as_uri())
    assert len(tab.texts(".area g:not(.off) > circle")) == 2 * marks
    tab.click("input.show-run[value='1']")
    assert len(tab.texts(".area g:not(.off) > circle")) == marks
    assert tab.complaints() == []


def test_page_leads_to_modules_neighbours_and_sections_and_copies_commands(folder: Path, browser: Chromium) -> None:
    tab = browser.open((folder / "exercises" / "1.1.html").as_uri(), width=1280)
    assert tab.texts(".side .here > a") == ["1 · Rivers2.5 / 20"]
    assert tab.texts(".side [aria-current=page]") == ["1.1 Source ◐ begun"]
    assert {"Questions", "Runs"} <= set(tab.texts(".sections a"))
    assert tab.texts(".around a") == ["Next → 1.2 Mouth"]
    tab.evaluate("navigator.clipboard.writeText = async (text) => { document.body.dataset.text = text; }")
    tab.click("pre.command + .copy")
    assert tab.evaluate("document.body.dataset.text").startswith("gpucourse deploy 1\ngpucourse run 1.1")
    tab.go((folder / "sweeps.html").as_uri())
    assert tab.texts("main code .whole") == ["--sweep"], "a line never ends inside an option"
    assert tab.texts("main code") == ["gpucourse run 3.2 --sweep batch_size=16,32,64"]
    tab = browser.open(run_page(folder), width=390)
    assert tab.texts(".side a, .sections a") == []
    assert tab.evaluate("document.querySelector('header.top').offsetHeight") < 60, "the tabs are in one row"
    tab.click(".side > summary")
    assert tab.texts(".side .here > a") == ["1 · Rivers2.5 / 20"]
    assert len(tab.texts(".around a")) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(390, True), (390, False), (1280, True), (1280, False)])
def test_page_fits_its_window_without_complaint(folder: Path, browser: Chromium, width: int, dark: bool) -> None:
    tab = browser.open((folder / "index.html").as_uri(), width=width, dark=dark)
    for file in sorted(folder.rglob("*.html")):
        tab.go(file.as_uri())
        assert not is_too_wide(tab), file.name
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is not dark
    assert tab.complaints() == []


@pytest.mark.slow
def test_page_without_scripts_shows_everything_but_its_tools(folder: Path, browser: Chromium) -> None:
    tab = browser.open(run_page(folder), script=False)
    assert tab.texts("#log > span") == ["[n0 r0] loss 2.5", "[n0 r0] loss 1.5", "[n0 r0] the end"]
    assert tab.texts(".tools") == []
    assert tab.texts("th button") == []
    tab.go((folder / "compare" / "1.1.html").as_uri())
    assert "25 +150 %" in tab.texts("table.compare td")
    tab.go((folder / "book.html").as_uri())
    assert tab.texts("li[data-words] a")[:2] == ["Rivers", "Rain"]


def test_page_with_hostile_text_runs_and_fetches_nothing(
    learning: Learning, browser: Chromium, address: str, tmp_path: Path
) -> None:
    text = make_hostile(address)
    record = learning.record("1.1", METRICS | {"device": text}, error=text, parameters={text: text})
    learning.context.paths.run("1.1", record.id).rank_log("node0", 0).write_text(text)
    context = learning.open_context()
    write_folder(tmp_path / "page", build(context, open_(context)))
    tab = browser.open((tmp_path / "page" / "index.html").as_uri())
    for file in sorted((tmp_path / "page").rglob("*.html")):
        tab.go(file.as_uri())
        assert not is_owned(tab)
    assert tab.complaints() == []
    assert _Counting.paths == []


def test_report_with_hostile_text_runs_and_fetches_nothing(browser: Chromium, address: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_bytes(make_report(tmp_path, make_hostile(address)))
    tab = browser.open(page.as_uri())
    assert "Still missing" in tab.evaluate("document.body.textContent")
    assert not is_owned(tab)
    assert _Counting.paths == []
    page.write_text(f"<!doctype html><title>x</title><body>{without_leaving(make_hostile(address))}")
    tab.go(page.as_uri())
    assert is_owned(tab), "without escaping and policy the same text runs"
    assert _Counting.paths


def test_report_is_styled_and_shows_its_pictures(browser: Chromium, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_bytes(make_report(tmp_path, "calm"))
    tab = browser.open(page.as_uri())
    assert tab.evaluate("getComputedStyle(document.querySelector('h2')).borderTopWidth") == "2px"
    assert tab.evaluate("document.images[0].naturalWidth") > 0


@pytest.mark.slow
def test_policy_of_a_report_holds_after_an_escape_failed(browser: Chromium, address: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    markup = without_leaving(make_hostile(address)).encode()
    page.write_bytes(make_report(tmp_path, "calm").replace(b"</body>", markup + b"</body>"))
    assert not is_owned(browser.open(page.as_uri()))
    assert _Counting.paths == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plot", "screen"])
def test_picture_opened_by_itself_runs_and_fetches_nothing(browser: Chromium, address: str, tmp_path: Path, name: str) -> None:
    text = make_hostile(address)
    page = tmp_path / f"{name}.svg"
    if name == "plot":
        page.write_bytes(draw_picture(tmp_path, text).svg)
    else:
        with (tmp_path / "err").open("w") as err:
            live = Live(Out(err), colour=False, moving=False, quiet=True)
            view = View(title=text, blocks=(facts([(text, text)]),), footer=(text,))
            capture(page, command=text, live=live, view=view, mode="local")
    tab = browser.open(page.as_uri())
    assert tab.evaluate("document.documentElement.tagName") == "svg"
    assert not is_owned(tab)
    assert _Counting.paths == []
