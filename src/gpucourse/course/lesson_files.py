"""The files next to a module's manifest: the parts of the lesson and their pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

from gpucourse.course.catalog import MANIFEST, Catalog
from gpucourse.course.references import find_dead_commands
from gpucourse.model.manifest import Module

PICTURES = {".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp"}
MAX_COLUMNS = 78  # of the 80 columns of a terminal, rich leaves one free on each side of a block
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")  # a link in Markdown, without its anchor
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_ANCHOR = re.compile(r"\]\(#([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_CODE = re.compile(r"```.*?```", re.DOTALL)
# The block structure is enough, because the text in the blocks is not parsed here.
_PARSER = MarkdownIt("commonmark").disable("inline")


def check_lessons(catalog: Catalog, module: Module) -> Iterator[str]:
    """Yield the errors in a module's lessons, one line each, and the files in its folder that no lesson uses."""
    folder = catalog.folders.modules / catalog.folder_name(module)
    label = f"{catalog.folders.modules.name}/{folder.name}"
    names = (module.lesson, *module.further_lessons)
    texts = dict(zip(names, catalog.lesson_parts(module), strict=True))
    for name, text in texts.items():
        yield from (f"{label}/{name}: {reason}" for reason in (*_check_lesson(text), *find_dead_commands(catalog, text)))
        for link in _LINK.findall(text):
            if "://" not in link and not (folder / link).is_file():
                yield f"{label}/{name}: links to {link}, which does not exist"
    if len(names) > len(set(names)):
        yield f"{label}/{MANIFEST}: further_lessons: a part of the lesson is named twice"
    links = {link.removeprefix("./") for text in texts.values() for link in _LINK.findall(text)}
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder).as_posix()
        if path.suffix in PICTURES and place not in links:
            yield f"{label}/{place}: no lesson shows this picture"
        elif path.suffix == ".md" and place not in names and place not in links:
            yield f"{label}/{place}: is not a part of the lesson: name it in further_lessons"


def _check_lesson(text: str) -> Iterator[str]:
    prose = _CODE.sub("", text)
    yield from _find_wide_code(text)
    if not text.lstrip().startswith("#"):
        yield "does not begin with a heading"
    yield from (
        f"the picture {file} has no words for readers who cannot see it: ![words]({file})"
        for words, file in _PICTURE.findall(prose)
        if not words.strip()
    )
    headings = {_make_anchor(title) for title in _HEADING.findall(prose)}
    yield from (
        f"links to #{anchor}, but has no heading of this name" for anchor in _ANCHOR.findall(prose) if anchor not in headings
    )


def _find_wide_code(text: str) -> Iterator[str]:
    """Yield a message for each line of code, indented or between fences, that is too wide for a terminal with 80 columns."""
    for token in _PARSER.parse(text):
        if token.type not in {"code_block", "fence"} or token.map is None:
            continue
        first = token.map[0] + (2 if token.type == "fence" else 1)  # `map` counts from 0; a fence begins with its own line
        for number, code in enumerate(token.content.split("\n"), first):
            columns = len(code.expandtabs(4).rstrip())
            if columns > MAX_COLUMNS:
                yield f"line {number}: a code line has {columns} columns, but only {MAX_COLUMNS} fit on a terminal with 80"


def _make_anchor(title: str) -> str:
    """Return the anchor that Markdown pages give a heading with this title."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
