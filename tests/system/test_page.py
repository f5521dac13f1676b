"""The page of a workspace in a real browser, read from the disk: it sorts, filters and compares, and complains of nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.learning.pages.open_ import open_
from gpucourse.ui.page.build import build
from gpucourse.ui.page.folder import write_folder
from tests.chromium import Chromium, Tab
from tests.learning import FOLDER, MANIFEST, METRICS, Learning

pytestmark = pytest.mark.system

PLOT = """    plots:
      - {file: springs, title: Springs, kind: line, rows: metrics.springs, x: litres, x_title: litres, y_title: "%",
         series: [{key: busy_percent, label: busy}]}
"""
CHECKS = "    checks:\n"
SPRINGS = [{"litres": litres, "busy_percent": percent} for litres, percent in ((9.5, 40), (100.0, 78), (20.0, 96))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Path:
    """A page with two runs of one exercise."""
    learning = Learning(tmp_path, monkeypatch, capfd)
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
    """Whether the page itself, not a table in it, has to be moved sideways."""
    wide: bool = tab.evaluate("document.documentElement.scrollWidth > innerWidth")
    return wide


def test_pages_open_filter_sort_and_compare_without_complaint(folder: Path, tmp_path: Path) -> None:
    with Chromium(tmp_path) as browser:
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
        assert tab.texts("pre.log") == ["loss 2.5\nloss 1.5"]
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


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1100, True)])
def test_every_page_fits_its_window_and_complains_of_nothing(folder: Path, tmp_path: Path, width: int, dark: bool) -> None:
    with Chromium(tmp_path) as browser:
        tab = browser.open((folder / "index.html").as_uri(), width=width, dark=dark)
        for file in sorted(folder.rglob("*.html")):
            tab.go(file.as_uri())
            assert not is_too_wide(tab), file.name
        back = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(255, 255, 255)") is not dark
        assert tab.complaints() == []


@pytest.mark.slow
def test_without_scripts_all_of_it_is_shown_and_nothing_that_needs_one(folder: Path, tmp_path: Path) -> None:
    with Chromium(tmp_path) as browser:
        tab = browser.open(run_page(folder), script=False)
        assert "loss 2.5\nloss 1.5\nthe end" in tab.texts("pre.log")
        assert tab.texts(".tools") == []
        assert tab.texts("th button") == []
        tab.go((folder / "compare" / "1.1.html").as_uri())
        assert "25 +150 %" in tab.texts("table.compare td")
        tab.go((folder / "book.html").as_uri())
        assert tab.texts("li[data-words] a")[:2] == ["Rivers", "Rain"]


@pytest.mark.slow
def test_text_that_looks_like_a_script_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    owned = "document.documentElement.dataset.owned = 1"
    hostile = f"\"'></pre></script><script>{owned}</script><img src=x onerror='{owned}'><svg onload='{owned}'></svg>"
    learning = Learning(tmp_path, monkeypatch, capfd)
    record = learning.record("1.1", METRICS | {"device": hostile}, error=hostile, parameters={hostile: hostile})
    learning.context.paths.run("1.1", record.id).rank_log("node0", 0).write_text(hostile)
    context = learning.open_context()
    write_folder(tmp_path / "page", build(context, open_(context)))
    with Chromium(tmp_path) as browser:
        tab = browser.open((tmp_path / "page" / "index.html").as_uri())
        for file in sorted((tmp_path / "page").rglob("*.html")):
            tab.go(file.as_uri())
            assert tab.evaluate("document.documentElement.dataset.owned") is None
        assert tab.complaints() == []
