"""A report as PDF: its pages, its fonts, and characters that no font can show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpucourse.figures.fonts import font_files, fonts_for
from gpucourse.model.report import LOCAL, MACHINES, Chapter, Grid, Picture
from gpucourse.report import html, pdf
from tests.unit.report.examples import chapter, report


def test_render_pdf_has_pages_fonts_and_the_picture(picture: Picture) -> None:
    document = pdf.render(report(*[chapter(picture)] * 3, mode="local"), font_files())
    data = document.data
    assert data.startswith(b"%PDF-")
    assert data.rstrip().endswith(b"%%EOF")
    pages = len(re.findall(rb"/Type /Page\b(?!s)", data))
    assert 3 <= pages <= pdf.MAX_PAGES, pages
    assert (document.pages, document.lost) == (pages, "")
    assert b"DejaVuSans" in data
    assert b"/Subtype /Image" in data


@pytest.mark.parametrize(("count", "pages"), [(1, 1), (3, 3)])
def test_render_pdf_has_a_title_page_unless_one_page_has_room_for_everything(
    picture: Picture, count: int, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[tuple[int, str]] = []
    write = pdf._Pages.write_text

    def note(page: pdf._Pages, text: str, **options: Any) -> None:
        lines.append((page.page_no(), text))
        write(page, text, **options)

    monkeypatch.setattr(pdf._Pages, "write_text", note)
    machines = Chapter(id=MACHINES, title="Machines", text="These.", grids=chapter(picture).grids)
    content = report(machines, *[chapter(picture)] * count, mode="local")
    document = pdf.render(replace(content, course="A course", abstract="What was found."), font_files())
    last = lines[max(place for place, line in enumerate(lines) if line[1] == "GPU benchmark report") :]
    first_page = [text for page, text in last if page == 1]
    for words in ("Ada Example", "A course", "2031-05-04  ·  mode: local", LOCAL, "What was found.", "Table 1. Achieved"):
        assert words in first_page
    assert {f"Figure {number + 1}. Peak" for number in range(count)} <= {text for _, text in last}
    assert (document.pages, "Compute & memory" in first_page) == (pages, count == 1)


def test_render_pdf_accepts_words_in_other_scripts_and_very_long_ones(picture: Picture) -> None:
    words = "Η Τ4 είναι φθηνότερη; карта дешевле; " + "x" * 400 + " α∕β ≈ 1.7 × 10³"
    assert pdf.render(report(chapter(picture, words=words)), font_files()).data.startswith(b"%PDF-")


HERE = "中 \u0c85 ا 🚀 é"  # a Chinese sign, a Kannada letter, an Arabic one, a rocket


def test_render_pdf_names_characters_that_no_font_can_show(picture: Picture) -> None:
    document = pdf.render(report(chapter(picture, words=HERE)), font_files())
    assert document.lost == "".join(sorted("中\u0c85ا🚀"))
    assert HERE in html.render(report(chapter(picture, words=HERE))).decode()


@pytest.mark.slow
def test_render_pdf_shrinks_a_long_report_before_it_adds_pages(picture: Picture) -> None:
    content = report(*[chapter(picture, words="Take the L4. " * 60)] * 5)
    assert pdf.render(content, font_files()).pages == pdf.MAX_PAGES


def test_render_pdf_fits_a_table_wider_than_the_page(picture: Picture) -> None:
    columns = tuple(f"a long column title {number}" for number in range(11))
    grid = Grid(title="Wide", columns=columns, rows=((*["1234567.89"] * 11,),) * 60, numeric=(True,) * 11)
    content = report(Chapter(id="wide", title="Wide", text="Many columns.", grids=(grid,)))
    assert pdf.render(content, font_files()).data.startswith(b"%PDF-")


def test_render_pdf_uses_a_font_with_characters_that_others_lack(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = font_files()["regular"].parent
    lacking = "\u1d84"  # a phonetic sign, which STIX has and DejaVu has not
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: [str(folder / "STIXGeneral.ttf"), "/etc/hosts"])
    rendering = pdf.render(report(chapter(picture, words=f"a {lacking} b")), font_files(), fonts_for)
    assert rendering.lost == ""
    assert b"STIXGeneral" in rendering.data
    document = pdf.render(report(chapter(picture, words="中")), font_files(), lambda _: [Path("/etc/hosts")])
    assert document.lost == "中"
