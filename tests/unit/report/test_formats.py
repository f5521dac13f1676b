"""One report in three formats: everything is in it, nothing is taken for mark-up, what is missing is named."""

from __future__ import annotations

import re
from base64 import b64decode
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from gpucourse.figures.fonts import font_files, fonts_for
from gpucourse.figures.plots import draw
from gpucourse.model.manifest import Plot, Series
from gpucourse.model.report import LOCAL, Chapter, Grid, Picture, Report, Saying
from gpucourse.report import html, markdown, pdf

HOSTILE = "<script>alert('a & b')</script> | * [x](http://evil)"


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Picture:
    series = (Series(key="tflops", label="TFLOP/s"),)
    plot = Plot(
        file="peak", title="Peak", kind="bar", rows="metrics.rows", x="gpu", series=series, x_title="GPU", y_title="TFLOP/s"
    )
    rows = [{"gpu": "T4", "tflops": 41.2}, {"gpu": "L4", "tflops": 58.9}]
    folder = tmp_path_factory.mktemp("picture")
    png, svg = sorted(draw(plot, {"rows": rows}, subtitle="made up", folder=folder))
    return Picture(title="Peak", png=png.read_bytes(), svg=svg.read_bytes())


def report(*chapters: Chapter, mode: str = "aws", missing: tuple[str, ...] = ()) -> Report:
    return Report(
        title="GPU benchmark report",
        author="Ada Example",
        made="2031-05-04",
        mode=mode,
        subjects=("Tesla T4", "NVIDIA L4"),
        chapters=chapters,
        missing=missing,
    )


def chapter(picture: Picture, *, words: str = "Take the L4.\n\nIt is cheaper a token.") -> Chapter:
    grid = Grid(
        title="Achieved",
        columns=("measured on", "TFLOP/s"),
        rows=(("Tesla T4", "41.2"), (HOSTILE, "–")),
        numeric=(False, True),
        note="– not measured",
    )
    saying = Saying(title="Recommendation", question="recommendation", text=words)
    return Chapter(
        id="compute",
        title="Compute & memory",
        text="What each GPU reaches.",
        grids=(grid,),
        pictures=(picture,),
        sayings=(saying,),
        missing=("a good run of 4.3. `gpucourse run 4.3`",),
        sources=("20310504-101112-otter",),
    )


class Page(HTMLParser):
    """What a browser would make of it: the text, the tags that are open at the end, and where anything is fetched from."""

    VOID = frozenset({"meta", "link", "br", "img", "use", "path", "rect", "defs"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in {"src", "href"} and tag != "use"]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_html_is_one_file_that_fetches_nothing(picture: Picture) -> None:
    text = html.render(report(chapter(picture))).decode()
    page = Page(text)
    assert len(page.fetched) == 1
    assert page.fetched[0].startswith("data:image/svg+xml;base64,"), "the picture is in the file"
    assert "script" not in page.tags
    drawing = b64decode(page.fetched[0].partition(",")[2])
    assert drawing == picture.svg
    assert b"url(http" not in drawing
    assert "url(http" not in text
    said = " ".join(" ".join(page.words).split())
    for words in ("GPU benchmark report", "Ada Example", "Tesla T4", HOSTILE, "– not measured", "20310504-101112-otter"):
        assert words in said
    assert "Take the L4." in text
    assert "<code>gpucourse run 4.3</code>" in text


@pytest.mark.parametrize("mode", ["local", "aws"])
def test_simulated_nodes_are_named_at_the_top(picture: Picture, mode: str) -> None:
    content = report(chapter(picture), mode=mode)
    assert (LOCAL in unescape(html.render(content).decode())) == (mode == "local")
    assert (LOCAL in markdown.render(content)[0].decode()) == (mode == "local")


def test_markdown_names_the_pictures_that_it_hands_over(picture: Picture) -> None:
    text, pictures = markdown.render(report(chapter(picture), missing=("a second GPU",)))
    assert re.findall(r"!\[[^]]*]\(([^)]+)\)", text.decode()) == list(pictures) == ["compute-1.png"]
    assert pictures["compute-1.png"] == picture.png
    assert "\\<script\\>" in text.decode() or "\\<script>" in text.decode()
    assert "- a second GPU" in text.decode()


WORDS = f"""{HOSTILE} <img src=x onerror=alert(1)> ![p](http://evil/p.png)
[r]: http://evil
![r] <http://evil> `code` ~~~ # no title $x$ \\<b>

- a list"""


def test_markdown_shows_what_a_person_wrote_as_text(picture: Picture) -> None:
    text = markdown.render(report(chapter(picture, words=WORDS)))[0].decode()
    shown = MarkdownIt("commonmark").render(text)  # it leaves HTML as it is
    assert re.findall(r"<(?:img|script|a|b)\b[^>]*>", shown) == ['<img src="compute-1.png" alt="Peak" />']
    for line in WORDS.splitlines()[:3]:
        assert line in unescape(shown)
    assert "<li>a list</li>" in shown


def test_pdf_has_pages_the_fonts_and_the_picture(picture: Picture) -> None:
    made = pdf.render(report(*[chapter(picture)] * 3, mode="local"), font_files())
    data = made.data
    assert data.startswith(b"%PDF-")
    assert data.rstrip().endswith(b"%%EOF")
    pages = len(re.findall(rb"/Type /Page\b(?!s)", data))
    assert 2 <= pages <= 3, pages
    assert (made.pages, made.lost) == (pages, "")
    assert b"DejaVuSans" in data
    assert b"/Subtype /Image" in data


def test_pdf_takes_words_in_other_letters_and_very_long_ones(picture: Picture) -> None:
    words = "Η Τ4 είναι φθηνότερη; карта дешевле; " + "x" * 400 + " α∕β ≈ 1.7 × 10³"
    assert pdf.render(report(chapter(picture, words=words)), font_files()).data.startswith(b"%PDF-")


HERE = "中 \u0c85 ا 🚀 é"  # a Chinese sign, a Kannada letter, an Arabic one, a rocket


def test_what_no_font_shows_is_a_box_and_named(picture: Picture) -> None:
    made = pdf.render(report(chapter(picture, words=HERE)), font_files())
    assert made.lost == "".join(sorted("中\u0c85ا🚀"))
    assert HERE in html.render(report(chapter(picture, words=HERE))).decode()


def test_a_font_that_has_what_others_lack_is_taken(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = font_files()["regular"].parent
    lacking = "\u1d84"  # a phonetic sign, which STIX has and DejaVu has not
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: [str(folder / "STIXGeneral.ttf"), "/etc/hosts"])
    assert fonts_for("") == []
    assert fonts_for("中") == []
    assert fonts_for(f"{lacking}中") == [folder / "STIXGeneral.ttf"]
    made = pdf.render(report(chapter(picture, words=f"a {lacking} b")), font_files(), fonts_for)
    assert made.lost == ""
    assert b"STIXGeneral" in made.data
    broken = pdf.render(report(chapter(picture, words="中")), font_files(), lambda _: [Path("/etc/hosts")])
    assert broken.lost == "中"


@pytest.mark.slow
def test_much_to_show_becomes_smaller_before_it_becomes_more(picture: Picture) -> None:
    content = report(*[chapter(picture, words="Take the L4. " * 60)] * 5)
    assert pdf.render(content, font_files()).pages == pdf.MOST_PAGES
    assert pdf.render(content, font_files(), scales=(1.0,)).pages > pdf.MOST_PAGES, "which is told"


def test_a_table_wider_than_the_page_still_fits(picture: Picture) -> None:
    columns = tuple(f"a long column title {number}" for number in range(11))
    grid = Grid(title="Wide", columns=columns, rows=((*["1234567.89"] * 11,),) * 60, numeric=(True,) * 11)
    content = report(Chapter(id="wide", title="Wide", text="Many columns.", grids=(grid,)))
    assert pdf.render(content, font_files()).data.startswith(b"%PDF-")


def test_the_fonts_are_files() -> None:
    assert all(isinstance(path, Path) and path.is_file() for path in font_files().values())
