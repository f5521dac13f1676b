"""A report as one HTML file, to be read or printed: no script, no link to the outside, pictures inside."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import escape

from gpucourse.model.node import is_simulated
from gpucourse.model.report import LOCAL, Chapter, Grid, Picture, Report, Saying

STYLE = """
:root { --ink: #1c2430; --soft: #5b6675; --line: #d7dde5; --mark: #2563a8; --warn: #8a4b08; --pale: #f4f7fa; }
* { box-sizing: border-box; }
body { font: 10.5pt/1.5 "Source Sans 3", "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: var(--ink);
  max-width: 50rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 22pt; line-height: 1.15; margin: 0 0 .3rem; }
h2 { font-size: 14pt; margin: 1.8rem 0 .4rem; padding-top: .5rem; border-top: 2px solid var(--mark); }
h3 { font-size: 10.5pt; margin: 1rem 0 .3rem; }
.by, .note, .sources { color: var(--soft); font-size: 9pt; }
.mode, .missing { border-left: 4px solid var(--warn); background: #fdf6ec; padding: .5rem .8rem; margin: .8rem 0; }
.missing ul { margin: .2rem 0 0; padding-left: 1.1rem; }
table { border-collapse: collapse; width: 100%; font-size: 9pt; font-variant-numeric: tabular-nums; }
th { text-align: left; border-bottom: 1.5px solid var(--ink); vertical-align: bottom; }
th, td { padding: .22rem .5rem; }
td { border-bottom: 1px solid var(--line); }
tr:nth-child(even) td { background: var(--pale); }
.n { text-align: right; white-space: nowrap; }
figure { margin: .8rem 0; }
figure img { width: 100%; height: auto; max-height: 11.5cm; }
blockquote { margin: .4rem 0 .8rem; padding: .1rem 0 .1rem 1rem; border-left: 4px solid var(--mark); white-space: pre-line; }
blockquote, .by { overflow-wrap: anywhere; }
td { overflow-wrap: break-word; }
code { font: 9pt/1.4 "SFMono-Regular", Consolas, "DejaVu Sans Mono", monospace; }
@page { size: A4; margin: 16mm 15mm; }
@media print {
  body { max-width: none; margin: 0; padding: 0; }
  h2, h3 { break-after: avoid; }
  table, figure, blockquote, .missing { break-inside: avoid; }
  tr:nth-child(even) td, .mode, .missing { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def make_policy(style: str, script: str = "") -> str:
    """Return the policy of a file: a browser may only show pictures that are in it, and use exactly this style and this script.
    Names, logs and answers in the file are escaped; the policy protects the reader if an escape was forgotten."""
    scripts = _digest(script) if script else "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; img-src data:; base-uri 'none'; "
        f"form-action 'none'; style-src {_digest(style)}"
    )


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


POLICY = make_policy(STYLE)
"""The policy of a report: no script at all."""


def render(report: Report) -> bytes:
    """Return the report as a whole HTML document in UTF-8."""
    body = "\n".join(_body(report))
    head = f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    head += f'<meta name="viewport" content="width=device-width">\n<title>{escape(report.title)}</title>'
    head += f"\n<style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'.encode()


def _body(report: Report) -> Iterator[str]:
    yield f"<header><h1>{escape(report.title)}</h1>"
    yield f'<p class="by">{escape(report.author)} · {escape(report.made)}'
    yield f"<br>{escape(' · '.join(report.subjects))}</p></header>" if report.subjects else "</p></header>"
    if is_simulated(report.mode):
        yield f'<p class="mode">{escape(LOCAL)}</p>'
    yield from _render_missing(report.missing)
    for chapter in report.chapters:
        yield from _chapter(chapter)


def _chapter(chapter: Chapter) -> Iterator[str]:
    yield f'<section id="{escape(chapter.id)}"><h2>{escape(chapter.title)}</h2><p>{escape(chapter.text)}</p>'
    yield from _render_missing(chapter.missing)
    for grid in chapter.grids:
        yield from _grid(grid)
    for picture in chapter.pictures:
        yield _picture(picture)
    for saying in chapter.sayings:
        yield from _render_saying(saying)
    if chapter.sources:
        yield f'<p class="sources">From the runs {escape(", ".join(chapter.sources))}.</p>'
    yield "</section>"


def _grid(grid: Grid) -> Iterator[str]:
    yield f"<h3>{escape(grid.title)}</h3><table><thead><tr>"
    classes = [' class="n"' if numeric else "" for numeric in grid.numeric]
    yield "".join(f"<th{kind}>{escape(title)}</th>" for kind, title in zip(classes, grid.columns, strict=True))
    yield "</tr></thead><tbody>"
    for row in grid.rows:
        yield "<tr>" + "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(classes, row, strict=True)) + "</tr>"
    yield "</tbody></table>"
    if grid.note:
        yield f'<p class="note">{escape(grid.note)}</p>'


def _picture(picture: Picture) -> str:
    """Return the SVG as an image, which prints sharp: a browser runs no script of an image and fetches nothing for it."""
    source = f"data:image/svg+xml;base64,{b64encode(picture.svg).decode()}"
    return f'<figure><img alt="{escape(picture.title)}" src="{source}"></figure>'


def _render_saying(saying: Saying) -> Iterator[str]:
    if saying.text:  # otherwise it is listed as missing
        yield f"<h3>{escape(saying.title)}</h3>"
        yield f"<blockquote>{escape(saying.text)}</blockquote>"


def _render_missing(missing: tuple[str, ...]) -> Iterator[str]:
    if missing:
        listed = "".join(f"<li>{_with_code(sentence)}</li>" for sentence in missing)
        yield f'<div class="missing"><strong>Not here yet</strong><ul>{listed}</ul></div>'


def _with_code(text: str) -> str:
    """Return the text as HTML; the parts between backticks are commands."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
