"""Every command in README, docs and lessons can be typed as it is written: its words, options and values exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gpucourse.cli import app, session
from gpucourse.cli.help import COMMANDS

USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # typer carries click under a private name; this is its UsageError
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("modules/*/*.md"))]
_INLINE = re.compile(r"`gpucourse ([^`]+)`")
_INDENTED = re.compile(r"^ {4}(?:\$ )?gpucourse (.+)$", re.MULTILINE)
_SENTENCE = re.compile(rf"gpucourse ((?:{'|'.join(COMMANDS)})(?: (?:\d[\w.]*|--[\w-]+|\w+=[\w.-]*\w))+)")
_BLOCK = re.compile(r"^ *```(\S*)[^\n]*\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_FIRST_CELL = re.compile(r"^\| (`.*?`[^|`]*) \|", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
_OPTIONAL = re.compile(r"\[([^\]]*)\]")
_SHELL = {"", "sh", "console", "bash"}
_LINE = re.compile(r"^\s*(?:\$ )?(?:\S+/)?gpucourse (.+)$", re.MULTILINE)
_PLACEHOLDERS = re.compile(r"\[|\]|\.\.\.|…|\||<|\b[A-Z]{2,}\b|\bN\b")  # a pattern of a command, not one to type


def list_lines(text: str) -> Iterator[str]:
    """Yield the words after `gpucourse` in every shell block and in every inline code, with single spaces. Patterns are
    included.
    """
    lines = [line for kind, block in _BLOCK.findall(text) if kind in _SHELL for line in _LINE.findall(block)]
    prose = _BLOCK.sub("", text)
    for line in [*lines, *_INDENTED.findall(prose), *_INLINE.findall(prose)]:
        command = re.split(r"\s{2,}|\s#|\s&&|\s>|\s\||;", line)[0]  # what is behind it explains it, or is another command
        yield " ".join(command.split())


def list_short_forms(text: str) -> Iterator[str]:
    """Yield the commands in the first column of tables, which are written without `gpucourse`: once without the words in
    brackets, and once with each of them. An option alone belongs to the command before it and is left out.
    """
    for cell in _FIRST_CELL.findall(text):
        for command in _CODE.findall(cell):
            if command.split()[0] not in COMMANDS:
                continue
            yield " ".join(_OPTIONAL.sub("", command).split())
            for option in _OPTIONAL.finditer(command):
                head, tail = command[: option.start()], command[option.end() :]
                yield " ".join(f"{_OPTIONAL.sub('', head)} {option[1]} {_OPTIONAL.sub('', tail)}".split())


def list_commands(text: str) -> Iterator[list[str]]:
    """Yield the words after `gpucourse` of every command that can be typed as it is written."""
    for line in list_lines(text):
        if not line.startswith("-") and not _PLACEHOLDERS.search(line):
            yield shlex.split(line)


def check_command(words: list[str]) -> None:
    """Raise a typer error if the parser of the program refuses these words."""
    words = words[1:] if words[0] == "help" else words  # `help run` is `run --help`
    program: Any = typer.main.get_command(app.tree(words[0]))
    context = program.make_context("gpucourse", ["list"], resilient_parsing=True)
    name, command, arguments = program.resolve_command(context, session.split(words)[1])
    command.make_context(name, arguments, parent=context)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_commands_of_a_page_can_be_typed(page: Path) -> None:
    for words in list_commands(page.read_text(encoding="utf-8")):
        try:
            check_command(words)
        except typer.Exit:
            continue  # it asks for help
        except USAGE_ERROR as error:
            if words[1:]:  # a command alone, without what it is about, is only named
                pytest.fail(f"gpucourse {shlex.join(words)}: {error}")


@pytest.mark.parametrize("manifest", sorted(ROOT.glob("modules/*/module.yaml")), ids=lambda path: path.parent.name)
def test_options_of_a_manifests_commands_exist(manifest: Path) -> None:
    for sentence in set(_SENTENCE.findall(manifest.read_text(encoding="utf-8"))):
        try:
            check_command(sentence.split())
        except typer.Exit:
            continue
        except USAGE_ERROR as error:  # words of the sentence follow, so only an option can be wrong
            if "no such option" in str(error).lower():
                pytest.fail(f"gpucourse {sentence}: {error}")
