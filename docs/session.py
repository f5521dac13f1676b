"""Record the README's animation: a session from deploy to destroy, in a terminal that scrolls, as docs/images/session.svg.

`python -m docs.session` types the commands in a terminal, in a new home folder that is removed afterwards. The animation runs
at the recorded speed, except that long commands are shortened, and then starts again. For readers who prefer reduced motion, it
shows only the end.
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
MAX_S, PAUSE_S, END_S = (
    6.0,
    1.5,
    5.0,
)  # seconds: the longest command in the picture, the pause after a command, the pause after the last one
LOGS = 6  # how many of the ranks' last lines are shown for a run
WINDOW = 24  # lines of the terminal
WIDTH, LINE, CHARACTER, MARGIN = 80, 17.0, 7.83, 14.0
BACKGROUND, TEXT = "#161b22", "#d6dde5"
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
    return rows[:-1]


def shorten_logs(lines: list[str]) -> list[str]:
    """Return the lines with only the last lines of the ranks, after a row of dots that replaces the earlier lines."""
    logs = [number for number, line in enumerate(lines) if line.startswith("[n")]
    dropped = set(logs[:-LOGS])
    return [
        line if number not in dropped else "…" for number, line in enumerate(lines) if number not in dropped - set(logs[:1])
    ]


def draw(rows: list[Row]) -> str:
    """Return the picture: all lines in one column that scrolls up in a window, and a cover over the lines that have not
    appeared yet.
    """
    width, height = MARGIN * 2 + CHARACTER * WIDTH, MARGIN * 2 + LINE * WINDOW
    length_s = rows[-1][0] + END_S
    covers = [(second, LINE * (number + 1)) for number, (second, _) in enumerate(rows)]
    scrolls = [(second, -LINE * max(number + 1 - WINDOW, 0)) for number, (second, _) in enumerate(rows)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
            'aria-label="deploy, run and destroy at the command line">',
            "<style>",
            "text { font: 13px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre; }",
            f"#lines {{ transform: translateY({scrolls[-1][1]:g}px); }}",
            f"#cover {{ transform: translateY({covers[-1][1]:g}px); }}",
            "@media (prefers-reduced-motion: no-preference) {",
            f"  #lines {{ animation: scroll {length_s:.2f}s step-end infinite; }}",
            f"  #cover {{ animation: cover {length_s:.2f}s step-end infinite; }}",
            "}",
            *_keyframes("scroll", scrolls, length_s),
            *_keyframes("cover", covers, length_s),
            "</style>",
            f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="{BACKGROUND}"/>',
            f'<svg y="{MARGIN:g}" width="{width:.0f}" height="{LINE * WINDOW:g}"><g id="lines">',
            *_texts(rows),
            f'<rect id="cover" width="{width:.0f}" height="{LINE * len(rows):g}" fill="{BACKGROUND}"/>',
            "</g></svg>",
            "</svg>\n",
        ]
    )


def _keyframes(name: str, places: list[tuple[float, float]], length_s: float) -> Iterator[str]:
    yield f"@keyframes {name} {{"
    yield from (f"  {100 * second / length_s:.3f}% {{ transform: translateY({place:g}px); }}" for second, place in places)
    yield "}"


def _texts(rows: list[Row]) -> Iterator[str]:
    for number, (_, line) in enumerate(rows):
        if line:
            colour = next((colour for start, colour in COLOURS.items() if line.strip().startswith(start)), TEXT)
            place = f'x="{MARGIN:g}" y="{LINE * (number + 0.75):.1f}"'
            length = f'textLength="{CHARACTER * len(line):.1f}" lengthAdjust="spacingAndGlyphs"'
            yield f'<text {place} {length} fill="{colour}">{escape(line)}</text>'


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:
        rows = record(Path(folder))
    PICTURE.write_text(draw(rows), encoding="utf-8")
    sys.stdout.write(f"{PICTURE}: {len(rows)} lines, {rows[-1][0] + END_S:.0f} s\n")


if __name__ == "__main__":
    main()
