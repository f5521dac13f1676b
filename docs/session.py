"""The recording of a whole session, deploy, run and destroy: docs/images/session.svg, lines that appear one after the other.

`python -m docs.session` types the commands in a terminal, in a new home folder that is removed afterwards. The picture
plays them at the speed at which they ran, the long ones shortened; a reader who asked for no motion sees all lines at once.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path

from docs.screens import type_command

PICTURE = Path(__file__).parent / "images" / "session.svg"
COMMANDS = ("gpucourse deploy 3", "gpucourse run 3.2 --nodes 2", "gpucourse destroy --all --yes")
MAX_S, PAUSE_S = 6.0, 1.2  # the longest time of a command in the picture, and the pause before the next
LOGS = 6  # lines of the ranks that are shown of a run, the last ones
WIDTH, LINE, CHARACTER, MARGIN = 80, 17.0, 7.83, 14.0
COLOURS = {"$": "#7ee787", "✓": "#56d364", "✗": "#ff7b72", "–": "#8b949e", "[": "#8b949e", "Next:": "#79a5ff"}

Row = tuple[float, str]


def record(home: Path) -> list[Row]:
    """Return every line of the session with the second at which it appears. Raises RuntimeError if a command does not end."""
    rows: list[Row] = []
    at = 0.0
    try:
        for command in COMMANDS:
            start_s = time.monotonic()
            lines = shorten_logs(type_command(command, home, {}).strip("\n").split("\n"))
            took_s = min(time.monotonic() - start_s, MAX_S)
            rows += [
                (at, f"$ {command}"),
                *((at + took_s * (number + 1) / len(lines), line) for number, line in enumerate(lines)),
            ]
            at += took_s + PAUSE_S
            rows.append((at, ""))
    finally:
        type_command("gpucourse destroy --all --yes --discard", home, {})
    return rows


def shorten_logs(lines: list[str]) -> list[str]:
    """Return the lines with only the last ones of the ranks, and a row of dots for those before."""
    logs = [number for number, line in enumerate(lines) if line.startswith("[n")]
    dropped = set(logs[:-LOGS])
    return [
        line if number not in dropped else "…" for number, line in enumerate(lines) if number not in dropped - set(logs[:1])
    ]


def draw(rows: list[Row]) -> str:
    """Return the picture: one text a line, which appears at its second."""
    height = MARGIN * 2 + LINE * len(rows)
    width = MARGIN * 2 + CHARACTER * WIDTH
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
            'aria-label="deploy, run and destroy at the command line">',
            "<style>",
            "text { font: 13px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre; }",
            "@media (prefers-reduced-motion: no-preference) {",
            "  text { opacity: 0; animation: appear 0.05s linear forwards; }",
            "  @keyframes appear { to { opacity: 1; } }",
            "}",
            "</style>",
            f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#161b22"/>',
            *_texts(rows),
            "</svg>\n",
        ]
    )


def _texts(rows: list[Row]) -> Iterator[str]:
    for number, (second, line) in enumerate(rows):
        if line:
            colour = next((colour for start, colour in COLOURS.items() if line.strip().startswith(start)), "#d6dde5")
            place = f'x="{MARGIN:g}" y="{MARGIN + LINE * (number + 0.75):.1f}"'
            length = f'textLength="{CHARACTER * len(line):.1f}" lengthAdjust="spacingAndGlyphs"'
            yield f'<text {place} {length} fill="{colour}" style="animation-delay: {second:.2f}s">{escape(line)}</text>'


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:
        rows = record(Path(folder))
    PICTURE.write_text(draw(rows), encoding="utf-8")
    sys.stdout.write(f"{PICTURE}: {len(rows)} lines, {rows[-1][0]:.0f} s\n")


if __name__ == "__main__":
    main()
