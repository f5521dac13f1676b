"""A report as PDF, by fpdf2: pure Python, nothing to install by hand. A4, the pictures as PNG, page numbers."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpucourse.errors import MissingError
from gpucourse.model.report import LOCAL, Chapter, Grid, Report, Saying

if TYPE_CHECKING:
    from fpdf import FPDF

FAMILY = "body"
INK, SOFT, MARK, WARN = (28, 36, 48), (91, 102, 117), (37, 99, 168), (138, 75, 8)
SIZE, SMALL, LINE = 9.5, 8.0, 4.6
"""Points, points, millimetres."""
MARGIN, FOOT = 15.0, 16.0
GAP = 4.5
"""Between two columns of a table, in millimetres."""
PICTURE_MM = 118.0
"""The width of a picture: two of them and their chapter's text share a page."""


def render(report: Report, fonts: Mapping[str, Path]) -> bytes:
    """The report as a PDF file. `fonts` are TrueType files by style: regular, bold, italic.

    Raises MissingError where fpdf2 is not installed.
    """
    try:
        from fpdf import FPDF
    except ImportError as error:
        raise MissingError("fpdf2 is not installed, which writes PDF", hint="pip install fpdf2, or: --format html") from error

    class Pages(FPDF):
        def footer(self) -> None:
            self.set_y(-11)
            self.set_font(FAMILY, "", 7.5)
            self.set_text_color(*SOFT)
            self.cell(0, 4, f"{report.title}  ·  page {self.page_no()} of {{nb}}", align="C")

    pdf = Pages(format="A4")
    pdf.set_title(report.title)
    pdf.set_author(report.author)
    pdf.set_creator("gpucourse")
    pdf.set_lang("en")
    for style, name in (("", "regular"), ("B", "bold"), ("I", "italic")):
        pdf.add_font(FAMILY, style, str(fonts[name]))
    pdf.set_margins(MARGIN, MARGIN, MARGIN)
    pdf.set_auto_page_break(auto=True, margin=FOOT)
    pdf.add_page()
    _title(pdf, report)
    for chapter in report.chapters:
        _chapter(pdf, chapter)
    return bytes(pdf.output())


def _title(pdf: FPDF, report: Report) -> None:
    _write(pdf, report.title, size=19, style="B", line=8.5)
    _write(pdf, f"{report.author}  ·  {report.made}", size=SMALL, colour=SOFT)
    if report.subjects:
        _write(pdf, "  ·  ".join(report.subjects), size=SMALL, colour=SOFT)
    if report.mode == "local":
        pdf.ln(1.5)
        _write(pdf, LOCAL, colour=WARN)
    _missing(pdf, report.missing)


def _chapter(pdf: FPDF, chapter: Chapter) -> None:
    from fpdf.enums import Align

    pdf.ln(3)
    if pdf.will_page_break(32):  # a heading does not stand alone at the foot of a page
        pdf.add_page()
    pdf.set_draw_color(*MARK)
    pdf.set_line_width(0.5)
    pdf.line(pdf.l_margin, pdf.get_y(), pdf.w - pdf.r_margin, pdf.get_y())
    pdf.ln(1.5)
    pdf.start_section(chapter.title)
    _write(pdf, chapter.title, size=13, style="B", line=6)
    _write(pdf, chapter.text)
    _missing(pdf, chapter.missing)
    for grid in chapter.grids:
        _grid(pdf, grid)
    for picture in chapter.pictures:
        pdf.ln(2)
        pdf.image(io.BytesIO(picture.png), x=Align.C, w=PICTURE_MM, alt_text=picture.title)
    for saying in chapter.sayings:
        _saying(pdf, saying)
    if chapter.sources:
        pdf.ln(1)
        _write(pdf, f"From the runs {', '.join(chapter.sources)}.", size=7.5, colour=SOFT)


def _grid(pdf: FPDF, grid: Grid) -> None:
    from fpdf.fonts import FontFace

    pdf.ln(2)
    if pdf.will_page_break(18):
        pdf.add_page()
    _write(pdf, grid.title, style="B")
    widths = _widths(pdf, grid)
    _ink(pdf, SMALL)
    pdf.set_draw_color(215, 221, 229)
    pdf.set_line_width(0.2)
    with pdf.table(
        width=min(sum(widths), pdf.epw),
        col_widths=tuple(widths),
        text_align=tuple("RIGHT" if numeric else "LEFT" for numeric in grid.numeric),
        borders_layout="HORIZONTAL_LINES",
        headings_style=FontFace(emphasis="BOLD", color=INK, fill_color=(244, 247, 250)),
        line_height=4.2,
        padding=(0.6, 1.4),
        align="LEFT",
        repeat_headings=1,
    ) as rows:
        for cells in (grid.columns, *grid.rows):
            row = rows.row()
            for cell in cells:
                row.cell(cell)
    if grid.note:
        _write(pdf, grid.note, size=7.5, colour=SOFT)


def _widths(pdf: FPDF, grid: Grid) -> list[float]:
    """The width of each column in mm: its widest text, where the page has room for that; never less than its longest word."""
    pdf.set_font(FAMILY, "B", SMALL)
    columns = list(zip(grid.columns, *grid.rows, strict=True))
    wide = [max(pdf.get_string_width(cell) for cell in cells) + GAP for cells in columns]
    narrow = [max(pdf.get_string_width(word) for cell in cells for word in (cell.split() or [""])) + GAP for cells in columns]
    spare = pdf.epw - sum(narrow)
    if spare <= 0:  # more than a page: as much of it as there is
        return [width * pdf.epw / sum(narrow) for width in narrow]
    share = min(1.0, spare / max(1e-9, sum(wide) - sum(narrow)))
    return [least + (most - least) * share for least, most in zip(narrow, wide, strict=True)]


def _saying(pdf: FPDF, saying: Saying) -> None:
    if not saying.text:  # named among what is missing
        return
    pdf.ln(2)
    _write(pdf, saying.title, style="B")
    left = pdf.l_margin
    pdf.set_left_margin(left + 4)
    _write(pdf, saying.text, style="I")
    pdf.set_left_margin(left)


def _missing(pdf: FPDF, missing: tuple[str, ...]) -> None:
    if missing:
        pdf.ln(1)
        _write(pdf, "Not here yet", style="B", colour=WARN)
        for one in missing:
            _write(pdf, f"–  {one.replace('`', '')}", colour=WARN)


def _write(
    pdf: FPDF, text: str, *, size: float = SIZE, style: str = "", line: float = LINE, colour: tuple[int, int, int] = INK
) -> None:
    """A paragraph over the whole width."""
    _ink(pdf, size, style, colour)
    pdf.multi_cell(0, line, text, align="L", new_x="LMARGIN", new_y="NEXT")


def _ink(pdf: FPDF, size: float, style: str = "", colour: tuple[int, int, int] = INK) -> None:
    pdf.set_font(FAMILY, style, size)
    pdf.set_text_color(*colour)
