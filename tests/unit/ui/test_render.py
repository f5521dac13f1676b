from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from gpucourse.ui.render import render
from gpucourse.ui.tables import Cell, Code, Column, Items, Markdown, Paragraph, View, facts, table

NODES = table(
    [Column("node"), Column("lines", align="right"), Column("seen", wrap=True)],
    [
        ("node0", "1,234", Cell("it answers", "good")),
        ("node11", "7", "its process has ended, and nobody knows why it did so at that very moment"),
    ],
    title="Nodes",
)
EVERYTHING = View(
    title="Everything",
    blocks=(
        facts([("run", "abc"), ("nothing", None), ("folder", "/a/b\n/c")]),
        NODES,
        Items(("first", Cell("second", "bad")), title="Steps", numbered=True),
        Items(("only",)),
        Paragraph("Running `text`."),
        Code("env \\\n  A=1 \\\n  python x.py", title="By hand"),
        Markdown("# Lesson\n\nSome *text* and `code`."),
    ),
    footer=("When you are done: gpucourse destroy 3",),
    headline=Cell("✓ passed", "good"),
    next="gpucourse run 3.2",
)


def test_render_a_whole_view_in_a_pipe() -> None:
    assert render(EVERYTHING) == (
        "Everything\n"
        "✓ passed\n"
        "\n"
        "run     abc\n"
        "folder  /a/b\n"
        "        /c\n"
        "\n"
        "Nodes\n"
        "node    lines  seen\n"
        "node0   1,234  it answers\n"
        "node11      7  its process has ended, and nobody knows why it did so at that very moment\n"
        "\n"
        "Steps\n"
        "  1. first\n"
        "  2. second\n"
        "\n"
        "  • only\n"
        "\n"
        "Running text.\n"
        "\n"
        "By hand\n"
        "env \\\n"
        "  A=1 \\\n"
        "  python x.py\n"
        "\n"
        "# Lesson\n"
        "\n"
        "Some *text* and `code`.\n"
        "\n"
        "When you are done: gpucourse destroy 3\n"
        "Next: gpucourse run 3.2\n"
    )


def strip_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("width", [40, 60, 100, 250])
def test_render_fits_any_width(width: int) -> None:
    text = render(EVERYTHING, width=width, colour=True)
    assert all(cell_len(line) <= width for line in strip_colours(text).splitlines())
    for word in ("Everything", "node11", "Steps", "Lesson", "python x.py", "Next:"):
        assert word in text
    assert "\x1b[32mit answers" in text
    assert "*text*" not in text, "Markdown is drawn, not shown"


def test_render_neither_cuts_nor_wraps_what_is_to_be_copied() -> None:
    command = "python " + " ".join(f"--flag-{number}=value" for number in range(40))
    path = "/home/learner/" + "deep/" * 30 + "metrics.json"
    view = View(blocks=(Code(command), facts([("folder", path)])))
    for text in (strip_colours(render(view, width=60, colour=True)), render(view), render(view, width=60)):
        assert command in text.splitlines()
        assert path in text


def test_render_continues_long_commands_on_a_terminal_alone() -> None:
    view = View(blocks=(Code("python x.py --size 4096 --name 'two words'", are_commands=True),))
    assert render(view) == "python x.py --size 4096 --name 'two words'\n"
    assert render(view, width=30) == "python x.py --size 4096 \\\n  --name 'two words'\n"


def test_render_shows_markup_and_escapes_as_text() -> None:
    evil = "[bold]x[/bold] :smile: \x1b[31mred\x1b[0m \x07"
    view = View(
        title=evil, blocks=(table([evil], [(evil,)], title=evil), facts([(evil, evil)]), Items((evil,)), Markdown(evil))
    )
    text = render(view, width=100, colour=False)
    assert text.count("[bold]x[/bold] :smile: red \\x07") >= 6
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("width", [40, 80])
def test_render_cuts_quoted_code_so_that_its_carets_point_at_the_error(width: int) -> None:
    source = f"    value = name({'first_argument, ' * 6}fourth==3 4)"
    marks = " " * source.index("fourth") + "^" * len("fourth==3 4")
    output = f'  File "my_ddp.py", line 31\n{source}\n{marks}\nSyntaxError'
    lines = render(View(blocks=(Code(output),)), width=width).splitlines()
    assert len(lines) == 4
    assert all(len(line) <= width for line in lines)
    assert lines[1][lines[2].index("^") :].startswith("fourth==3 4")
    assert render(View(blocks=(Code(output),)), width=None).splitlines()[1] == source
