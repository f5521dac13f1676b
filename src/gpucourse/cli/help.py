"""Lay out `--help`: commands in groups, and the options that every command accepts. Also explain a wrong command line, and say
what to type instead."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer.core

from gpucourse.cli.session import Session
from gpucourse.errors import GpucourseError, UsageError, suggest

# Every command, in the order of the help. A command's file and its function are named after it: see
# `app.name_in_python`.
GROUPS = {
    "Learn": ("next", "init", "list", "show", "edit", "hint", "try", "watch", "cuda", "answer", "quiz", "reset"),
    "Run": ("run", "runs", "logs", "cancel", "check", "compare", "open", "break"),
    "Lab": ("doctor", "deploy", "status", "ssh", "destroy", "trust"),
    "Grade": ("grade", "report"),
    "AWS": ("cost", "stop", "start", "extend", "keep", "allow-ip", "leaks"),
    "Author": ("dev",),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
WITHOUT_JSON = ("edit", "init", "watch", "logs", "open", "ssh")

_SYNONYMS = {"resume": "next", "pause": "stop", "delete": "destroy", "continue": "next"}
"""Words that people type instead of the name of a command, each with that name."""

HELP_OF_GLOBAL_OPTIONS = (
    ("--workspace DIR", "Which workspace (default: found from here, or ~/gpucourse)."),
    ("-q, --quiet", "Results, warnings and errors only."),
    ("--verbose", "More detail, and the traceback of an error."),
)


_HOME = re.compile(r"(--[\w-]+=|)(~|~(?:[a-z_][\w-]*)?/.*)", re.DOTALL)

_NUMBER = re.compile(r"\w+\.\d+")
_OPTIONS_WITH_PROMPT = ("--expect-red",)
"""The options that ask for their value if it is left out."""
_INVALID = re.compile(r"Invalid value for '([^']*)'[^:]*: (?:Value error, )?")
_EXTRA_WORDS = re.compile(r"unexpected extra argument(?:s|\(s\))? \((.*)\)", re.DOTALL)
_WRONG_VALUE = re.compile(r"Input should be ([\w ]+?-?[\d.]*)(?:,|\.?$)")
_NUMBERS = {
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "greater than or equal to": "a number of at least",
    "less than or equal to": "a number of at most",
}
"""The parser's requirements for a number, mapped to plain words."""
_GLOBAL_OPTIONS = ("--workspace", "--quiet", "--verbose")


def _expand_home(word: str) -> str:
    """Expand a `~` at the beginning of the path in a word, because the shell leaves `--out=~/page` unchanged."""
    from gpucourse.workspace.locate import expand

    match = _HOME.fullmatch(word)
    return word if match is None else f"{match[1]}{expand(Path(match[2]), os.environ)}"


def _end_without_value(word: str, following: str) -> str:
    """Return `word` with an empty value if it is an option with an optional value and no value follows. Return any other word
    unchanged."""
    return f"{word}=" if word in _OPTIONS_WITH_PROMPT and following.startswith("-") else word


class CommandHelp(typer.core.TyperCommand):
    """A command whose help also lists the options that every command accepts. Every path in its arguments may begin with
    `~`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the typed words; those after `--` are passed on unchanged."""
        end = args.index("--") if "--" in args else len(args)
        words = [_expand_home(_end_without_value(word, following)) for word, following in pairwise([*args[:end], "--"])]
        return super().parse_args(ctx, [*words, *args[end:]])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the command's own options, then the options that every command accepts."""
        super().format_options(ctx, formatter)
        with formatter.section("Options of every command"):
            formatter.write_dl(HELP_OF_GLOBAL_OPTIONS)


class GroupedHelp(typer.core.TyperGroup):
    """The program, whose help shows its commands in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group under its name. A long summary continues on the next line; it is never cut."""
        width = max(map(len, self.commands))
        for title, names in GROUPS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name.ljust(width), command.help or "") for name, command in commands if command is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        with formatter.section("Options of every command"):
            formatter.write_dl(HELP_OF_GLOBAL_OPTIONS)


def explain(error: Any, arguments: Sequence[str], session: Session) -> UsageError:
    """Return the error of the command-line parser in this program's words, with the command to type next."""
    path = error.ctx.command_path if error.ctx else "gpucourse"
    option = getattr(error, "option_name", None)
    if not arguments:
        return UsageError(error.format_message())  # the help, which also says what to type next
    if error.ctx is not None and error.ctx.parent is None and not arguments[0].startswith("-"):
        return _explain_command(arguments[0], arguments[1:])
    if option is not None and (
        error.ctx is None or option in _GLOBAL_OPTIONS
    ):  # the option exists; its value is missing or extra
        fault = "needs a value" if "requires" in error.message else "accepts no value"
        return UsageError(
            f"{option} {fault}", hint=f"{path} --help" if arguments[0].startswith("-") else f"gpucourse {arguments[0]} --help"
        )
    if option is not None and (command := _suggest_set(option, arguments, session)) is not None:
        return UsageError(f"{option} is a parameter of the exercise, not an option", hint=command)
    if option is not None:
        options = [name for parameter in error.ctx.command.params for name in parameter.opts if name.startswith("--")]
        return UsageError(
            f"there is no option {option}.{suggest(option, [*options, *_GLOBAL_OPTIONS], cutoff=0.65)}", hint=f"{path} --help"
        )
    message, parameter = _INVALID.sub(r"\1: ", error.format_message()), getattr(error, "param", None)
    if extra_words := _EXTRA_WORDS.search(message):
        return _explain_extra_words(error.ctx.command, extra_words[1], arguments)
    if parameter is not None and type(error).__name__ == "MissingParameter" and parameter.help:
        choices = message.partition("Choose from:")[2].split()
        subject = f"one of: {' '.join(choices)}" if choices else parameter.help[0].lower() + parameter.help[1:].rstrip(".")
        return UsageError(f"{path.removeprefix('gpucourse ')} needs {subject}", hint=f"{path} --help")
    if parameter is not None and (wrong_value := _WRONG_VALUE.search(message)):
        return _explain_number(parameter.opts, wrong_value[1], arguments)
    if "Did you mean" not in message and (wrong_choice := re.search(r"'([^']*)' is not one of (.*)", message)):
        message += suggest(wrong_choice[1], re.findall(r"'([^']*)'", wrong_choice[2]), cutoff=0.65)
    return UsageError(message, hint=f"{path} --help")


def _explain_extra_words(command: Any, extra_words: str, arguments: Sequence[str]) -> UsageError:
    """Return the error for more arguments than a command accepts. The hint is the typed line without them."""
    count = sum(parameter.param_type_name == "argument" for parameter in command.params)
    argument_limit = f"at most {count} argument{'s' if count > 1 else ''}" if count else "no argument"
    options = [parameter for parameter in command.params if parameter.param_type_name == "option" and not parameter.is_flag]
    names = {name for option in options for name in option.opts}
    words, remaining = list(arguments), extra_words
    for index in reversed(range(1, len(words))):
        if words[index - 1] not in names and f" {remaining}".endswith(f" {words[index]}"):
            remaining = remaining.removesuffix(words[index]).rstrip()
            del words[index]
    message = f"{arguments[0]} accepts {argument_limit}, but '{extra_words}' was typed{' as well' if count else ''}"
    return UsageError(message, hint=shlex.join(["gpucourse", *words]))


def _explain_number(options: Sequence[str], requirement: str, arguments: Sequence[str]) -> UsageError:
    """Return the error for a value that is not a number, or that is outside its limits. The hint is the typed line with a
    number in place of the value."""
    for words, text in _NUMBERS.items():
        requirement = requirement.replace(words, text)
    number = limit[0] if (limit := re.search(r"-?[\d.]+$", requirement)) else "2"
    line = list(arguments)
    for index, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name in options:
            place = index if equals else index + 1
            line[place] = f"{name}={number}" if equals else number
            typed = value if equals else arguments[place]
            return UsageError(f"{name} needs {requirement}, not '{typed}'", hint=shlex.join(["gpucourse", *line]))
    return UsageError(f"{options[0]} needs {requirement}", hint=f"gpucourse {arguments[0]} --help")


def _explain_command(word: str, arguments: Sequence[str]) -> UsageError:
    """Return the error for a word that is not a command. If the word is the number of an exercise or module, the hint is the
    command that shows it; otherwise the hint is the typed line with a similar command."""
    import difflib

    if _NUMBER.fullmatch(word) or word.isdecimal():
        return UsageError(f"there is no command '{word}'", hint=f"gpucourse show {word}")
    # Stricter than `suggest`, because these words are short.
    near = [_SYNONYMS[word]] if word in _SYNONYMS else difflib.get_close_matches(word, COMMANDS, n=2)
    hint = shlex.join(["gpucourse", *near[:1], *(arguments if near[:1] != ["next"] else ())]) if near else "gpucourse --help"
    return UsageError(f"there is no command '{word}'" + (f". Did you mean {' or '.join(near)}?" if near else ""), hint=hint)


def _suggest_set(option: str, arguments: Sequence[str], session: Session) -> str | None:
    """Return the typed line with `--set name=value` in place of the option, or None if the option is not a parameter of the
    exercise."""
    number = next((word for word in arguments[1:] if _NUMBER.fullmatch(word)), None)
    name = option.removeprefix("--").partition("=")[0].replace("-", "_")
    try:
        if number is None or session.context.catalog.exercise(number)[1].parameter(name) is None:
            return None
    except (GpucourseError, OSError):
        return None
    place = next(index for index, word in enumerate(arguments) if word.partition("=")[0] == option)
    _, equals, value = arguments[place].partition("=")
    remaining = list(arguments[place + 1 :])
    if not equals:
        value = remaining.pop(0) if remaining and not remaining[0].startswith("--") else "VALUE"
    return shlex.join(["gpucourse", *arguments[:place], "--set", f"{name}={value}", *remaining])
