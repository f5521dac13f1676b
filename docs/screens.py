"""Run the commands above the screens in the pages of docs, and compare or store the screens.

`python -m docs.screens` runs every page with such screens, each in a new home folder, and fails if the words of a screen have
changed. Numbers, names of runs and line breaks may differ. `--write` stores the screens as they are now.

A block of kind `console` contains commands after `$ ` and their output; `export NAME=VALUE` applies to all commands after it. A
block with a title is a file, named relative to the home folder. If the file is missing, it is written; otherwise, the block is
appended. Only a block of Python changes an existing file: its function replaces the function of the same name.
"""

from __future__ import annotations

import ast
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.unit.ui.emulator import Emulator

PAGES = Path(__file__).parent
COLUMNS, LINES = 80, 50
PATIENCE_S = 300.0
HOME = "/home/learner"  # the home folder in the pages
BLOCK = re.compile(r"^```(?:console|\w+ title=\"(?P<file>[^\"]+)\")\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"export (\w+)=(\S+)")
_DEPENDS_ON_SPEED = re.compile(r"· importing torch|This took |keeps torch ready")  # shown if it takes long
_VARIES = (
    (re.compile(r"\d+\s+min\s+so\s+far,\s+of\s+"), ""),  # time spent, shown from the first minute on
    (re.compile(r"\d{8}-\d{6}-\w+"), "RUN"),
    (re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?"), "0"),
    (re.compile(r"\b0 (ms|min|h)\b"), "0 s"),
    (re.compile(r"[ ─━┈█▏▎▍▌▋▊▉]+"), " "),
)


@dataclass(frozen=True)
class Difference:
    """A screen whose words have changed. `words`: the removed (`- word`) and the added (`+ word`) words."""

    page: Path
    command: str
    words: tuple[str, ...]


def pages() -> list[Path]:
    """Return the pages that contain screens."""
    return [page for page in sorted(PAGES.glob("*.md")) if "```console\n$ " in page.read_text(encoding="utf-8")]


def renew(page: Path) -> tuple[str, list[Difference]]:
    """Return the text of the page with its current screens, and the screens whose words have changed.

    Raises RuntimeError if a command does not end, ValueError if an edit names an unknown function.
    """
    text = page.read_text(encoding="utf-8")
    differences: list[Difference] = []
    with tempfile.TemporaryDirectory(
        prefix="", dir="/tmp"
    ) as folder:  # as long as HOME, so that lines wrap as they would there
        home = Path(folder)
        exports: dict[str, str] = {}
        pieces, end = [], 0
        try:
            for block in BLOCK.finditer(text):
                pieces.append(text[end : block.start()])
                end = block.end()
                if block["file"]:
                    write_block(home / block["file"], block["body"])
                    pieces.append(block.group())
                    continue
                screens = list(_screens(block["body"], home, exports))
                differences += _compare(page, block["body"], screens)
                pieces.append("```console\n" + "".join(f"$ {command}\n{screen}" for command, screen in screens) + "```")
        finally:
            type_command("gpucourse destroy --all --yes --discard", home, exports)
        pieces.append(text[end:])
    return "".join(pieces), differences


def form(screen: str) -> set[str]:
    """Return the words of a screen, without words that differ from run to run. Line breaks are ignored, because a wider number
    wraps the header of a table differently.
    """
    text = "\n".join(line for line in screen.splitlines() if not _DEPENDS_ON_SPEED.search(line))
    for pattern, replacement in _VARIES:
        text = pattern.sub(replacement, text)
    return set(text.split())


def _screens(body: str, home: Path, exports: dict[str, str]) -> Iterator[tuple[str, str]]:
    for command in list_commands(body):
        if export := read_export(command, home):
            exports |= export
        yield command, "" if export else type_command(command, home, exports)


def list_commands(body: str) -> list[str]:
    """Return the commands of a block of kind `console`."""
    return [line[2:] for line in body.splitlines() if line.startswith("$ ")]


def read_export(command: str, home: Path) -> dict[str, str]:
    """Return the variable that `export NAME=VALUE` sets. The result is empty for any other command."""
    match = _EXPORT.fullmatch(command)
    return {match[1]: match[2].replace("~", str(home))} if match else {}


def _compare(page: Path, body: str, screens: list[tuple[str, str]]) -> Iterator[Difference]:
    stored = re.split(r"^\$ .*\n", body, flags=re.MULTILINE)[1:]
    for (command, screen), before in zip(screens, stored, strict=True):
        old, new = form(before), form(screen)
        if old != new:
            changed = [*(f"- {word}" for word in sorted(old - new)), *(f"+ {word}" for word in sorted(new - old))]
            yield Difference(page, command, tuple(changed))


def write_block(file: Path, body: str) -> None:
    """Write or change the file that the title of a block names. Raises ValueError if a block of Python names an unknown
    function.
    """
    if file.is_file() and file.suffix == ".py":
        _edit(file, body)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as text:
        text.write(body)


def _edit(file: Path, source: str) -> None:
    """Replace the function of the same name as the one in `source`."""
    (function,) = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    text = file.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function.name:
            lines = text.splitlines(keepends=True)
            lines[node.lineno - 1 : node.end_lineno] = [source]
            file.write_text("".join(lines), encoding="utf-8")
            return
    raise ValueError(f"{file} has no function {function.name}")


def type_command(command: str, home: Path, exports: dict[str, str]) -> str:
    """Return the screen of a terminal of 80 columns after the command. Raises RuntimeError if it does not end."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCOURSE_", "XDG_"))}
    environ = {
        **inherited, **exports, "HOME": str(home), "NO_COLOR": "1", "TERM": "xterm-256color", "LANG": "C.UTF-8",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=home,
        env=environ,
        start_new_session=True,
    )
    os.close(theirs)
    received = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise RuntimeError(f"{command} does not end") from None
    emulator = Emulator(COLUMNS)
    emulator.feed(received.decode().replace("\r\n", "\n"))
    return "".join(f"{line}\n" for line in emulator.lines).replace(str(home), HOME)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # every process has closed the other side
        return b""


def main(arguments: list[str]) -> int:
    """Compare the screens, or store them with --write. Return 1 if the words of a screen have changed."""
    write = arguments == ["--write"]
    if arguments and not write:
        sys.stderr.write("usage: python -m docs.screens [--write]\n")
        return 2
    worst = 0
    for page in pages():
        text, differences = renew(page)
        if write:
            page.write_text(text, encoding="utf-8")
            continue
        for difference in differences:
            words = "\n  ".join(difference.words)
            sys.stdout.write(f"{difference.page.name}: `{difference.command}` shows something else now:\n  {words}\n")
            worst = 1
    if worst:
        sys.stdout.write("If that is how it should look: python -m docs.screens --write\n")
    return worst


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
