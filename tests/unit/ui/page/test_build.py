"""The page of a workspace as files: what is on it, that all of it is escaped, that it stays small."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gpucourse.learning.pages.open_ import open_
from gpucourse.learning.pages.run_content import LOG_BYTES
from gpucourse.model.sweep import Point, Sweep
from gpucourse.ui.page.build import build
from gpucourse.workspace import runs
from gpucourse.workspace.files import write_record
from tests.learning import METRICS, SCRIPT, Learning

HOSTILE = "</pre></title></style>\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}\x1b]0;own\x07"


@pytest.fixture
def learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Learning:
    return Learning(tmp_path, monkeypatch, capfd)


def pages_of(learning: Learning) -> dict[str, str]:
    """Every file of the page, by its path."""
    context = learning.open_context()
    return {name: data.decode() for name, data in build(context, open_(context))}


class Reader(HTMLParser):
    """What a page holds: its tags with their attributes, its links, its ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def count(self, tag: str) -> int:
        """How many tags of that name there are."""
        return sum(name == tag for name, _ in self.tags)

    @property
    def links(self) -> list[str]:
        """Where the page leads."""
        return [str(given["href"]) for tag, given in self.tags if tag == "a"]


def test_build_makes_every_page_that_a_link_leads_to(learning: Learning) -> None:
    learning.put(
        "modules/01-rivers/lesson.md", "# Rivers\n\n## Rain\n\nIt falls. `E = m c²`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    record = learning.record("1.1")
    pages = pages_of(learning)
    assert {"index.html", "book.html", "runs.html", "book/1-1.html", "exercises/1.1.html"} <= set(pages)
    assert f"runs/1.1/{record.id}.html" in pages
    for name, text in pages.items():
        ids = {given["id"] for _, given in Reader(text).tags if "id" in given}
        for link in Reader(text).links:
            place, _, anchor = link.partition("#")
            target = Path("/", name).parent.joinpath(place).resolve().relative_to("/").as_posix() if place else name
            assert target in pages, f"{name} leads to {link}"
            inside = ids if target == name else {given.get("id") for _, given in Reader(pages[target]).tags}
            assert not anchor or anchor in inside, f"{name} leads to {link}"


def test_build_hides_nothing_beside_a_damaged_file(learning: Learning) -> None:
    record, whole = learning.record("1.1"), learning.record("1.2")
    learning.context.paths.run("1.1", record.id).metrics.write_text("{")
    pages = pages_of(learning)
    assert "metrics.json" in pages[f"runs/1.1/{record.id}.html"]
    assert "found it" in pages[f"runs/1.1/{record.id}.html"]
    assert "It is wet" in pages[f"runs/1.2/{whole.id}.html"]
    assert f"runs/1.2/{whole.id}.html" in pages["exercises/1.2.html"]


def test_build_shows_the_progress_and_the_checks_tables_and_logs_of_a_run(learning: Learning) -> None:
    record = learning.record("1.1")
    logs = learning.context.paths.run("1.1", record.id).logs
    logs.joinpath("node0-rank0.log").write_text("loss 2.5\n")
    pages = pages_of(learning)
    for words in (f'href="runs/1.1/{record.id}.html"', "0 of 2 exercises done", "of 25 points"):
        assert words in pages["index.html"]
    page = pages[f"runs/1.1/{record.id}.html"]
    for words in ("It is wet", "Springs", "loss 2.5", "rank 0 on node0", "Simulated nodes (mode: local)"):
        assert words in page


def test_build_shows_edits_of_a_run_folded_and_escaped(learning: Learning) -> None:
    whole, edited = learning.record("1.1"), learning.record("1.1")
    kept = learning.context.paths.run("1.1", edited.id).edited_file("source.py")
    kept.parent.mkdir()
    kept.write_text(f"# {HOSTILE}\n{SCRIPT}")
    edited.edited = ["source.py"]
    runs.save(learning.context.paths, edited)
    pages = pages_of(learning)
    page = pages[f"runs/1.1/{edited.id}.html"]
    assert "<details><summary>source.py" in page
    assert "the course&#39;s script, 1 added, 0 removed" in page
    assert '<span class="good">+# &lt;/pre&gt;' in page
    assert Reader(page).count("script") == 1
    assert "\x1b" not in page
    assert "Edited files" not in pages[f"runs/1.1/{whole.id}.html"]
    kept.unlink()
    assert "edited, and no copy of it is with the run" in pages_of(learning)[f"runs/1.1/{edited.id}.html"]


def test_build_puts_runs_side_by_side_with_differences(learning: Learning) -> None:
    springs = [{"litres": 1.5}, {"litres": 2.5}]
    learning.record("1.1", METRICS | {"springs": springs}, parameters={"depth": 10})
    learning.record("1.1", METRICS | {"springs": springs}, parameters={"depth": 25})
    page = pages_of(learning)["compare/1.1.html"]
    assert re.search(r"depth</th><td[^>]*>10 .*?</td><td[^>]*>25 <span class=\"delta\">\+150 %</span>", page)
    assert '<tr class="same"><th scope="row">row 1' in page


def test_build_shows_a_sweep_with_links_to_its_runs(learning: Learning) -> None:
    record = learning.record("1.1")
    sweep_id = runs.new_run(learning.context.paths, "1.1")
    points = [Point(value=10, run=record.id, state="succeeded", seconds=2.0), Point(value=20, state="failed", error=HOSTILE)]
    sweep = Sweep(id=sweep_id, exercise="1.1", parameter="depth", created=record.created, state="done", points=points)
    write_record(learning.context.paths.run("1.1", sweep_id).sweep, sweep)
    page = pages_of(learning)["sweeps.html"]
    assert f'href="runs/1.1/{record.id}.html"' in page
    assert "1.1 Source, by depth" in page
    assert "<script>alert" not in page


def test_build_escapes_names_and_logs_full_of_html(learning: Learning) -> None:
    metrics = METRICS | {"device": HOSTILE, "springs": [{"litres": HOSTILE, "busy_percent": 1}]}
    for _ in range(2):
        record = learning.record("1.1", metrics, error=HOSTILE, parameters={HOSTILE: HOSTILE})
    logs = learning.context.paths.run("1.1", record.id).logs
    for rank in range(2):
        logs.joinpath(f"node{rank}-rank{rank}.log").write_text(HOSTILE)
    learning.put(
        "modules/01-rivers/lesson.md", f"# {HOSTILE}\n\n[x](javascript:alert(1)) ![{HOSTILE}](http://x/x.svg)\n\n{HOSTILE}\n"
    )
    for name, text in pages_of(learning).items():
        page = Reader(text)
        assert page.count("script") == 1, name
        assert page.count("img") == 0, name
        assert not any(key.startswith("on") for _, given in page.tags for key in given), name
        assert not any(link.startswith("javascript") for link in page.links), name
        assert "\x1b" not in text
        assert " 49" not in text  # nothing of it was taken for a template


def test_build_allows_the_style_and_script_of_a_page_and_nothing_else(learning: Learning) -> None:
    text = pages_of(learning)["index.html"]
    policy = next(str(given["content"]) for tag, given in Reader(text).tags if given.get("http-equiv"))
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert f"{tag}-src 'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'" in policy
    assert "http" not in re.sub(r"http-equiv", "", text)  # nothing is fetched from anywhere


def test_build_holds_both_ends_of_a_huge_log(learning: Learning) -> None:
    record = learning.record("1.1")
    path = learning.context.paths.run("1.1", record.id).rank_log("node0", 0)
    with path.open("wb") as log:
        log.write(b"the first line\n")
        log.truncate(200_000_000)  # a hole in the file takes no room on the disk
        log.seek(200_000_000)
        log.write(b"\nthe last line")
    page = pages_of(learning)[f"runs/1.1/{record.id}.html"]
    assert "the first line" in page
    assert "the last line" in page
    assert "190.7 MiB are left out here" in page
    assert f"gpucourse logs {record.id} --rank 0" in page
    assert len(page) < LOG_BYTES * 8  # a zero byte is spelled out in four characters


def test_build_names_a_log_that_is_a_link_and_does_not_read_it(learning: Learning) -> None:
    record = learning.record("1.1")
    path = learning.context.paths.run("1.1", record.id).rank_log("node0", 0)
    path.unlink()
    learning.root.joinpath("secret").write_text("hidden words")
    path.symlink_to(learning.root / "secret")
    page = pages_of(learning)[f"runs/1.1/{record.id}.html"]
    assert "hidden words" not in page
    assert "node0-rank0.log cannot be read" in page


def test_open_exchanges_its_folder_and_leaves_foreign_files(learning: Learning) -> None:
    done = learning.types("open", "--no-browser")
    first = learning.workspace / "page" / "index.html"
    assert (done.code, done.out) == (0, f"{first}\n")
    first.with_name("old.html").write_text("old")
    assert learning.types("open", "--no-browser").code == 0
    assert not first.with_name("old.html").exists()
    other = learning.root / "other"
    other.mkdir()
    other.joinpath("thesis.txt").write_text("mine")
    done = learning.types("open", "--no-browser", "--out", str(other), code=2)
    assert "holds something that is not a page" in done.err
    assert other.joinpath("thesis.txt").read_text() == "mine"
    assert [path.name for path in learning.workspace.glob(".page*")] == []
