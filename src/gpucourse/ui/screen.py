"""Draw `screen.svg`, a picture of what the learner saw of a run. This needs neither another program nor a network."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from rich.terminal_theme import TerminalTheme
from rich.text import Text

from gpucourse.model.node import is_simulated
from gpucourse.storage import write_text
from gpucourse.ui.console import SIMULATED
from gpucourse.ui.render import render
from gpucourse.ui.styles import draw, line, make_console
from gpucourse.ui.tables import View
from gpucourse.ui.text import clean_line

if TYPE_CHECKING:
    from gpucourse.ui.live import Live

WIDTH = 100
STAGES = 40  # lines about stages, resources and nodes
LOGS = 24  # lines of logs

_BACKGROUND, _FOREGROUND = (22, 27, 34), (214, 221, 229)
_NORMAL = [(72, 79, 88), (255, 123, 114), (86, 211, 100), (227, 179, 65), (121, 165, 255), (210, 153, 255), (86, 212, 221)]
_BRIGHT = [(110, 118, 129), (255, 161, 152), (126, 231, 135), (242, 204, 96), (165, 198, 255), (226, 186, 255), (138, 229, 235)]
# The frame of the picture. It uses fonts of the reader's system; rich's own frame loads some from the network.
_FORMAT = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-family: system-ui, Arial, "DejaVu Sans", sans-serif; font-size: 18px; font-weight: bold; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def capture(path: Path, *, command: str, live: Live, view: View, mode: str) -> None:
    """Store the screen of a command: the command as it was typed, its stages, the end of its logs, and its result.

    The picture is the same for a terminal, a pipe and a quiet command. Raises StorageError if it cannot be written.
    """
    write_text(path, picture(command, live.transcript(stages=STAGES, logs=LOGS), view, mode))


def picture(command: str, lines: list[Text], view: View, mode: str) -> str:
    """Return the picture as SVG, WIDTH columns wide."""
    head = [line(("$ ", "good"), (clean_line(command), "strong"))]
    if is_simulated(mode):
        head.append(line((SIMULATED, "warn")))
    page = f"{draw(*head, *lines, colour=True)}\n{render(view, width=WIDTH, colour=True)}"
    console = make_console(StringIO(), width=WIDTH, colour=True, record=True)
    console.print(Text.from_ansi(page.rstrip("\n"), no_wrap=True, overflow="ellipsis"))
    title = f"{clean_line(view.title) or command} · mode: {mode}"
    theme = TerminalTheme(_BACKGROUND, _FOREGROUND, [*_NORMAL, _FOREGROUND], [*_BRIGHT, (255, 255, 255)])
    return console.export_svg(title=title, theme=theme, code_format=_FORMAT)
