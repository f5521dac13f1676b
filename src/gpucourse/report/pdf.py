"""Write a report as PDF with fpdf2, which is pure Python and needs nothing else installed. The pages are A4, with page numbers
and with the pictures as PNG. The first page has the title, the abstract, the machines and the contents.

If the report is longer than four pages, or if its last page would be nearly empty, pictures and text become smaller, but stay
readable.
"""

from __future__ import annotations

import io
import struct
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fpdf import FPDF
from fpdf.enums import Align
from fpdf.fonts import FontFace, TTFFont
from fpdf.outline import OutlineSection

from gpucourse.model.node import is_simulated
from gpucourse.model.report import LOCAL, MACHINES, Chapter, Grid, Picture, Report, Saying

FAMILY = "body"
INK, SOFT, MARK, WARN = (28, 36, 48), (91, 102, 117), (37, 99, 168), (138, 75, 8)
SIZE, SMALL, LINE, ROW = 9.5, 8.0, 4.6, 5.6
"""SIZE and SMALL are in points, LINE and ROW in millimetres. ROW is the height of a table row with one line of text."""
MARGIN, FOOT = 15.0, 16.0
GAP = 4.5
"""The space between two columns of a table, in millimetres."""
PICTURE_MM = 118.0
"""The width of a picture. At this width, two pictures and their chapter's text fit on a page."""
MIN_SHARE = 0.62
"""The smallest width of a picture on a page with little space left, as a share of PICTURE_MM."""
MAX_PAGES, SCALES = 4, (1.0, 0.94, 0.87, 0.8)
MIN_FILL = 0.3
"""The last page counts as nearly empty if a smaller share of its height is used."""
MIN_REST = 0.35
"""If the rest of a page is a smaller share than this, a chapter or table that does not fit there begins on the next page."""
TOP = 42.0
"""The distance of the title from the top of the first page, in millimetres."""
BOX = "\u25a1"


@dataclass(frozen=True)
class Pdf:
    """A PDF file. `lost` contains the characters of the report that no font here can show, or that are written from right to
    left. Each appears as a box. `fill` is the share of the last page that has something on it."""

    data: bytes
    pages: int
    lost: str = ""
    fill: float = 1.0


def render(
    report: Report,
    fonts: Mapping[str, Path],
    spare: Callable[[str], Sequence[Path]] = lambda _: (),
) -> Pdf:
    """Return the report as a PDF file. `fonts` are TrueType files by style: regular, bold, italic; `spare` returns fonts for
    characters that these lack."""
    first = _make_pdf(report, fonts, (), SCALES[0])
    spares = tuple(spare(first.lost)) if first.lost else ()
    candidates = [_make_pdf(report, fonts, spares, SCALES[0]) if spares else first]
    for scale in SCALES[1:]:
        if candidates[-1].pages <= MAX_PAGES and candidates[-1].fill >= MIN_FILL:
            return candidates[-1]
        candidates.append(_make_pdf(report, fonts, spares, scale))
    fits = [pdf for pdf in candidates if pdf.pages <= MAX_PAGES]
    return max(fits, key=lambda pdf: (pdf.fill >= MIN_FILL, -candidates.index(pdf))) if fits else candidates[-1]


def _make_pdf(report: Report, fonts: Mapping[str, Path], spare: Sequence[Path], scale: float) -> Pdf:
    """Return the report on one page if it fits there; otherwise, put the title and the contents on a separate first page."""
    pdf = _write(report, fonts, spare, scale, title_page=False)
    if pdf.page_no() > 1:
        pdf.close_fonts()
        pdf = _write(report, fonts, spare, scale, title_page=True)
    fill = (pdf.get_y() - MARGIN) / (pdf.h - MARGIN - FOOT)
    return Pdf(bytes(pdf.output()), pdf.page_no(), "".join(sorted(pdf.lost)), fill if pdf.page_no() > 2 else 1.0)


def _write(report: Report, fonts: Mapping[str, Path], spare: Sequence[Path], scale: float, *, title_page: bool) -> _Pages:
    pdf = _Pages(report, fonts, spare, scale)
    pdf.add_page()
    _title(pdf, report, title_page=title_page)
    chapters = [chapter for chapter in report.chapters if chapter.id != MACHINES]
    if title_page and chapters:
        pdf.ln(6)
        _heading(pdf, "Contents")
        pdf.insert_toc_placeholder(_write_contents)
    for chapter in chapters:
        _chapter(pdf, chapter)
    if pdf.lost:
        pdf.ln(2)
        pdf.write_text(f"{BOX} replaces a character that no font here can show. The HTML report shows them all.", colour=WARN)
    return pdf


class _Pages(FPDF):
    """The pages being written. `lost` is as in Pdf. `scale_of_text` scales everything; 1 is the usual size."""

    def __init__(self, report: Report, fonts: Mapping[str, Path], spare: Sequence[Path], scale: float) -> None:
        super().__init__(format="A4")
        self.lost: set[str] = set()
        self.scale_of_text = scale
        self.tables = self.figures = 0
        self.set_title(report.title)
        self.set_author(report.author)
        self.set_creator("gpucourse")
        self.set_lang("en")
        for style, name in (("", "regular"), ("B", "bold"), ("I", "italic")):
            self.add_font(FAMILY, style, str(fonts[name]))
        names = [FAMILY]
        for number, path in enumerate(spare):
            # A font in a format that fpdf2 cannot read is left out: its characters appear as boxes.
            with suppress(Exception):
                self.add_font(f"spare{number}", "", str(path))
                names.append(f"spare{number}")
        self.set_fallback_fonts(names, exact_match=False)
        self.set_margins(MARGIN, MARGIN, MARGIN)
        self.set_auto_page_break(auto=True, margin=FOOT)

    def footer(self) -> None:
        """Write the title and the page number; fpdf2 calls this at the end of each page."""
        self.set_y(-11)
        self.set_font(FAMILY, "", 7.5)
        self.set_text_color(*SOFT)
        self.cell(0, 4, f"{self.title}  ·  page {self.page_no()} of {{nb}}", align="C")

    def close_fonts(self) -> None:
        """Close the font files. fpdf2 itself closes them only when it writes the PDF file."""
        for font in self.fonts.values():
            if isinstance(font, TTFFont):
                font.close()

    def normalize_text(self, text: str) -> str:
        """Return the text with a box, or nothing, for each character that cannot be shown; fpdf2 calls this for every text
        before it draws it."""
        return "".join(map(self._show_or_box, super().normalize_text(text)))

    def _show_or_box(self, character: str) -> str:
        """Return the character, or a box if it cannot be shown, or an empty string if it only changes how another character
        looks."""
        usable = (self.current_font, *self.fonts.values())
        from_left = unicodedata.bidirectional(character) not in {"R", "AL"}
        if character in "\n\t" or (from_left and any(ord(character) in getattr(font, "cmap", ()) for font in usable)):
            return character
        if unicodedata.category(character) in {"Cf", "Cc", "Mn", "Me", "Sk"}:
            return ""
        self.lost.add(character)
        return BOX

    def write_text(
        self,
        text: str,
        *,
        size: float = SIZE,
        style: str = "",
        line: float = LINE,
        colour: tuple[int, int, int] = INK,
        align: Literal["L", "C"] = "L",
    ) -> None:
        """Write a paragraph over the whole width of the page, and go to the beginning of the next line."""
        self.use_ink(size, style, colour)
        self.multi_cell(0, line * self.scale_of_text, text, align=align, new_x="LMARGIN", new_y="NEXT")

    def use_ink(self, size: float, style: str = "", colour: tuple[int, int, int] = INK) -> None:
        """Use this font size (in points, before scaling), style and colour for the text that follows."""
        self.set_font(FAMILY, style, size * self.scale_of_text)
        self.set_text_color(*colour)


def _title(pdf: _Pages, report: Report, *, title_page: bool) -> None:
    """Write the title, the author if there is one, the course, the date and the mode, then the abstract and the machines."""
    if title_page:
        pdf.set_y(TOP)
    pdf.write_text(report.title, size=26 if title_page else 19, style="B", line=11 if title_page else 8.5)
    pdf.ln(2)
    if report.author:
        pdf.write_text(report.author, size=12, line=6)
    if report.course:
        pdf.write_text(report.course, colour=SOFT)
    mode = f"mode: {report.mode}" if report.mode else ""
    pdf.write_text("  ·  ".join(text for text in (report.made, mode) if text), colour=SOFT)
    if is_simulated(report.mode):
        pdf.ln(1.5)
        pdf.write_text(LOCAL, colour=WARN)
    if report.abstract:
        pdf.ln(6 if title_page else 2)
        _heading(pdf, "Abstract")
        pdf.write_text(report.abstract)
    for chapter in report.chapters:
        if chapter.id == MACHINES:
            pdf.ln(6 if title_page else 2)
            _heading(pdf, chapter.title)
            pdf.write_text(chapter.text)
            for grid in chapter.grids:
                _grid(pdf, grid)


def _heading(pdf: _Pages, text: str) -> None:
    pdf.set_draw_color(*MARK)
    pdf.set_line_width(0.5)
    pdf.line(pdf.l_margin, pdf.get_y(), pdf.w - pdf.r_margin, pdf.get_y())
    pdf.ln(1.5)
    pdf.write_text(text, size=13, style="B", line=6)


def _write_contents(pdf: FPDF, sections: Sequence[OutlineSection]) -> None:
    """Write the title and the page of each chapter; fpdf2 calls this when it knows the pages."""
    pdf.set_font(FAMILY, "", SIZE)
    pdf.set_text_color(*INK)
    pdf.set_x(pdf.l_margin)
    for section in sections:
        link = pdf.add_link(page=section.page_number)
        pdf.cell(pdf.epw - 12, LINE + 0.6, section.name, link=link)
        pdf.cell(12, LINE + 0.6, str(section.page_number), align="R", link=link, new_x="LMARGIN", new_y="NEXT")


def _chapter(pdf: _Pages, chapter: Chapter) -> None:
    pdf.ln(3)
    rows = len(chapter.grids[0].rows) + 2 if chapter.grids else 0
    _break_before(pdf, 32 + rows * ROW * pdf.scale_of_text)
    pdf.start_section(chapter.title)
    _heading(pdf, chapter.title)
    pdf.write_text(chapter.text)
    if chapter.sources:
        pdf.write_text(chapter.source_line, size=7.5, colour=SOFT)
    for grid in chapter.grids:
        _grid(pdf, grid)
    _pictures_and_sayings(pdf, chapter)


def _break_before(pdf: _Pages, height: float) -> None:
    """Begin a new page if something of this height does not fit on the rest of the page, and if that rest is small."""
    free_height = pdf.h - FOOT - pdf.get_y()
    if height > free_height and (free_height < MIN_REST * (pdf.h - MARGIN - FOOT) or free_height < 32):
        pdf.add_page()


def _pictures_and_sayings(pdf: _Pages, chapter: Chapter) -> None:
    """Write the pictures, then the author's words. A picture that does not fit below the text of a page is made smaller. If
    that is not enough, words are written before it, so that no page ends in a gap."""
    pictures, sayings = list(chapter.pictures), list(chapter.sayings)
    while pictures or sayings:
        width = _fit(pdf, pictures[0]) if pictures else None
        if pictures and (width is not None or not sayings):
            picture = pictures.pop(0)
            pdf.ln(2)
            full = PICTURE_MM * pdf.scale_of_text
            pdf.image(io.BytesIO(picture.png), x=Align.C, w=width or full, alt_text=picture.title)
            pdf.figures += 1
            pdf.write_text(f"Figure {pdf.figures}. {picture.title}", size=7.5, colour=SOFT, align="C")
        else:
            _write_saying(pdf, sayings.pop(0))


def _fit(pdf: _Pages, picture: Picture) -> float | None:
    """Return the largest width in mm, up to the usual width, at which the picture fits on the rest of the page. Return None if
    this would be less than the smallest width."""
    across, down = struct.unpack(">II", picture.png[16:24])  # a PNG has its width and height at this place
    full = PICTURE_MM * pdf.scale_of_text
    width = min(full, (pdf.h - FOOT - pdf.get_y() - 2.5 - LINE) * across / down)
    return width if width >= MIN_SHARE * full else None


def _grid(pdf: _Pages, grid: Grid) -> None:
    pdf.ln(2)
    _break_before(pdf, (len(grid.rows) + 2) * ROW * pdf.scale_of_text)
    pdf.tables += 1
    pdf.write_text(f"Table {pdf.tables}. {grid.title}", size=SMALL, style="B")
    widths = _widths(pdf, grid)
    pdf.use_ink(SMALL)
    pdf.set_draw_color(215, 221, 229)
    pdf.set_line_width(0.2)
    with pdf.table(
        width=min(sum(widths), pdf.epw),
        col_widths=tuple(widths),
        text_align=tuple("RIGHT" if numeric else "LEFT" for numeric in grid.numeric),
        borders_layout="HORIZONTAL_LINES",
        headings_style=FontFace(emphasis="BOLD", color=INK, fill_color=(244, 247, 250)),
        line_height=4.2 * pdf.scale_of_text,
        padding=(0.6 * pdf.scale_of_text, 1.4),
        align="LEFT",
        repeat_headings=1,
    ) as rows:
        for cells in (grid.columns, *grid.rows):
            row = rows.row()
            for cell in cells:
                row.cell(cell)
    if grid.note:
        pdf.write_text(grid.note, size=7.5, colour=SOFT)


def _widths(pdf: _Pages, grid: Grid) -> list[float]:
    """Return the width of each column in mm. A column is as wide as its widest text if the page is wide enough, otherwise
    narrower. It is at least as wide as its longest word, unless even that does not fit on the page."""
    pdf.set_font(FAMILY, "B", SMALL * pdf.scale_of_text)
    columns = list(zip(grid.columns, *grid.rows, strict=True))
    wide = [max(pdf.get_string_width(cell) for cell in cells) + GAP for cells in columns]
    narrow = [max(pdf.get_string_width(word) for cell in cells for word in (cell.split() or [""])) + GAP for cells in columns]
    spare = pdf.epw - sum(narrow)
    if spare <= 0:  # wider than the page: all columns share its width
        return [width * pdf.epw / sum(narrow) for width in narrow]
    share = min(1.0, spare / max(1e-9, sum(wide) - sum(narrow)))
    return [min_width + (max_width - min_width) * share for min_width, max_width in zip(narrow, wide, strict=True)]


def _write_saying(pdf: _Pages, saying: Saying) -> None:
    pdf.ln(2)
    pdf.write_text(saying.title, style="B")
    left_margin = pdf.l_margin
    pdf.set_left_margin(left_margin + 4)
    pdf.write_text(saying.text, style="I")
    pdf.set_left_margin(left_margin)
