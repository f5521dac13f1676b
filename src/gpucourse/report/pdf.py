"""A report as PDF, by fpdf2: pure Python, nothing to install by hand. A4, the pictures as PNG, page numbers.

Two to three pages: if there is more to show, pictures and letters become smaller, but they stay readable.
"""

from __future__ import annotations

import io
import struct
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gpucourse.errors import MissingError
from gpucourse.model.node import is_simulated
from gpucourse.model.report import LOCAL, Chapter, Grid, Picture, Report, Saying

if TYPE_CHECKING:
    from fpdf import FPDF

    class Pages(FPDF):
        """The pages being written. `lost` is as in Pdf; `scale_of_text` is the size of everything, 1 for the usual one."""

        lost: set[str]
        scale_of_text: float


FAMILY = "body"
INK, SOFT, MARK, WARN = (28, 36, 48), (91, 102, 117), (37, 99, 168), (138, 75, 8)
SIZE, SMALL, LINE = 9.5, 8.0, 4.6
"""Points, points, millimetres."""
MARGIN, FOOT = 15.0, 16.0
GAP = 4.5
"""Between two columns of a table, in millimetres."""
PICTURE_MM = 118.0
"""The width of a picture: two of them and their chapter's text share a page."""
LEAST_SHARE = 0.62
"""The smallest share of that width, for a page with too little room."""
MOST_PAGES, SCALES = 3, (1.0, 0.9, 0.8)
BOX = "\u25a1"


@dataclass(frozen=True)
class Pdf:
    """The file. `lost`: characters of the report that no font here can show from left to right; each appears as a box."""

    data: bytes
    pages: int
    lost: str = ""


def render(
    report: Report,
    fonts: Mapping[str, Path],
    spare: Callable[[str], Sequence[Path]] = lambda _: (),
    *,
    scales: Sequence[float] = SCALES,
) -> Pdf:
    """Return the report as a PDF file. `fonts` are TrueType files by style: regular, bold, italic; `spare` returns fonts for
    characters that these lack.

    Raises MissingError if fpdf2 is not installed.
    """
    pdf = _make_pdf(report, fonts, (), scales[0])
    spares = tuple(spare(pdf.lost)) if pdf.lost else ()
    for scale in scales if spares or pdf.pages > MOST_PAGES else ():
        pdf = _make_pdf(report, fonts, spares, scale)
        if pdf.pages <= MOST_PAGES:
            break
    return pdf


def _make_pdf(report: Report, fonts: Mapping[str, Path], spare: Sequence[Path], scale: float) -> Pdf:
    pdf = _pages(report, fonts, spare, scale)
    pdf.add_page()
    _title(pdf, report)
    for chapter in report.chapters:
        _chapter(pdf, chapter)
    missing = "".join(sorted(pdf.lost))
    if missing:
        pdf.ln(2)
        _write(
            pdf, f"{BOX} replaces a character that no font here can show. The same report as HTML has them all.", colour=WARN
        )
    return Pdf(bytes(pdf.output()), pdf.page_no(), missing)


def _pages(report: Report, fonts: Mapping[str, Path], spare: Sequence[Path], scale: float) -> Pages:
    try:
        from fpdf import FPDF
    except ImportError as error:
        raise MissingError("fpdf2, which writes PDF, is not installed", hint="pip install fpdf2, or: --format html") from error

    class ReportPdf(FPDF):
        lost: set[str]

        def footer(self) -> None:
            self.set_y(-11)
            self.set_font(FAMILY, "", 7.5)
            self.set_text_color(*SOFT)
            self.cell(0, 4, f"{report.title}  ·  page {self.page_no()} of {{nb}}", align="C")

        def normalize_text(self, text: str) -> str:
            """Replace characters that cannot be shown; fpdf2 calls this for every text before it sets it."""
            return "".join(map(self._show_or_box, super().normalize_text(text)))

        def _show_or_box(self, character: str) -> str:
            """Return the character; a box if it cannot be shown; an empty text if it only changes how another one looks."""
            usable = (self.current_font, *self.fonts.values())
            from_left = unicodedata.bidirectional(character) not in {"R", "AL"}
            if character in "\n\t" or (from_left and any(ord(character) in getattr(font, "cmap", ()) for font in usable)):
                return character
            if unicodedata.category(character) in {"Cf", "Cc", "Mn", "Me", "Sk"}:
                return ""
            self.lost.add(character)
            return BOX

    pdf = cast("Pages", ReportPdf(format="A4"))
    pdf.lost, pdf.scale_of_text = set(), scale
    pdf.set_title(report.title)
    pdf.set_author(report.author)
    pdf.set_creator("gpucourse")
    pdf.set_lang("en")
    for style, name in (("", "regular"), ("B", "bold"), ("I", "italic")):
        pdf.add_font(FAMILY, style, str(fonts[name]))
    names = [FAMILY]
    for number, path in enumerate(spare):
        # A font in a format that fpdf2 cannot read is left out: its characters appear as boxes.
        with suppress(Exception):
            pdf.add_font(f"spare{number}", "", str(path))
            names.append(f"spare{number}")
    pdf.set_fallback_fonts(names, exact_match=False)
    pdf.set_margins(MARGIN, MARGIN, MARGIN)
    pdf.set_auto_page_break(auto=True, margin=FOOT)
    return pdf


def _title(pdf: Pages, report: Report) -> None:
    _write(pdf, report.title, size=19, style="B", line=8.5)
    _write(pdf, f"{report.author}  ·  {report.made}", size=SMALL, colour=SOFT)
    if report.subjects:
        _write(pdf, "  ·  ".join(report.subjects), size=SMALL, colour=SOFT)
    if is_simulated(report.mode):
        pdf.ln(1.5)
        _write(pdf, LOCAL, colour=WARN)
    _write_missing(pdf, report.missing)


def _chapter(pdf: Pages, chapter: Chapter) -> None:
    pdf.ln(3)
    if pdf.will_page_break(32):  # a heading is never alone at the foot of a page
        pdf.add_page()
    pdf.set_draw_color(*MARK)
    pdf.set_line_width(0.5)
    pdf.line(pdf.l_margin, pdf.get_y(), pdf.w - pdf.r_margin, pdf.get_y())
    pdf.ln(1.5)
    pdf.start_section(chapter.title)
    _write(pdf, chapter.title, size=13, style="B", line=6)
    _write(pdf, chapter.text)
    _write_missing(pdf, chapter.missing)
    for grid in chapter.grids:
        _grid(pdf, grid)
    _pictures_and_sayings(pdf, chapter)
    if chapter.sources:
        pdf.ln(1)
        _write(pdf, f"From the runs {', '.join(chapter.sources)}.", size=7.5, colour=SOFT)


def _pictures_and_sayings(pdf: Pages, chapter: Chapter) -> None:
    """Write the pictures, then the author's words. A picture for which a page has too little room is made smaller; if that is
    not enough, words come before it, so that no page ends in a gap."""
    from fpdf.enums import Align

    pictures, sayings = list(chapter.pictures), list(chapter.sayings)
    while pictures or sayings:
        width = _fit(pdf, pictures[0]) if pictures else None
        if pictures and (width is not None or not sayings):
            picture = pictures.pop(0)
            pdf.ln(2)
            full = PICTURE_MM * pdf.scale_of_text
            pdf.image(io.BytesIO(picture.png), x=Align.C, w=width or full, alt_text=picture.title)
        else:
            _write_saying(pdf, sayings.pop(0))


def _fit(pdf: Pages, picture: Picture) -> float | None:
    """Return the width in mm at which the picture fits on the rest of the page: the usual one, or a smaller one; None if it is
    too high even at the smallest."""
    across, down = struct.unpack(">II", picture.png[16:24])  # every PNG has its width and height there
    full = PICTURE_MM * pdf.scale_of_text
    width = min(full, (pdf.h - FOOT - pdf.get_y() - 2.5) * across / down)
    return width if width >= LEAST_SHARE * full else None


def _grid(pdf: Pages, grid: Grid) -> None:
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
        _write(pdf, grid.note, size=7.5, colour=SOFT)


def _widths(pdf: Pages, grid: Grid) -> list[float]:
    """Return the width of each column in mm: that of its widest text if the page has room for it, otherwise less, but at least
    that of its longest word unless even these do not fit."""
    pdf.set_font(FAMILY, "B", SMALL * pdf.scale_of_text)
    columns = list(zip(grid.columns, *grid.rows, strict=True))
    wide = [max(pdf.get_string_width(cell) for cell in cells) + GAP for cells in columns]
    narrow = [max(pdf.get_string_width(word) for cell in cells for word in (cell.split() or [""])) + GAP for cells in columns]
    spare = pdf.epw - sum(narrow)
    if spare <= 0:  # wider than the page: all columns share its width
        return [width * pdf.epw / sum(narrow) for width in narrow]
    share = min(1.0, spare / max(1e-9, sum(wide) - sum(narrow)))
    return [least + (most - least) * share for least, most in zip(narrow, wide, strict=True)]


def _write_saying(pdf: Pages, saying: Saying) -> None:
    if not saying.text:  # it is listed as missing
        return
    pdf.ln(2)
    _write(pdf, saying.title, style="B")
    left = pdf.l_margin
    pdf.set_left_margin(left + 4)
    _write(pdf, saying.text, style="I")
    pdf.set_left_margin(left)


def _write_missing(pdf: Pages, missing: tuple[str, ...]) -> None:
    if missing:
        pdf.ln(1)
        _write(pdf, "Not here yet", style="B", colour=WARN)
        for sentence in missing:
            _write(pdf, f"–  {sentence.replace('`', '')}", colour=WARN)


def _write(
    pdf: Pages, text: str, *, size: float = SIZE, style: str = "", line: float = LINE, colour: tuple[int, int, int] = INK
) -> None:
    """Write a paragraph over the whole width."""
    _ink(pdf, size, style, colour)
    pdf.multi_cell(0, line * pdf.scale_of_text, text, align="L", new_x="LMARGIN", new_y="NEXT")


def _ink(pdf: Pages, size: float, style: str = "", colour: tuple[int, int, int] = INK) -> None:
    pdf.set_font(FAMILY, style, size * pdf.scale_of_text)
    pdf.set_text_color(*colour)
