"""Suggests what a command line that cannot be parsed was meant to be: the nearest command, option or value."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from gpucourse.cli.help import COMMANDS
from gpucourse.cli.session import Session
from gpucourse.errors import GpucourseError, UsageError, suggest

_NUMBER = re.compile(r"\w+\.\d+")
_OF_ALL = ("--workspace", "--quiet", "--verbose")


def explain(error: Any, arguments: Sequence[str], session: Session) -> UsageError:
    """Return the error of the command-line parser in this program's words, with the command to type next."""
    path = error.ctx.command_path if error.ctx else "gpucourse"
    option = getattr(error, "option_name", None)
    if not arguments:
        return UsageError(error.format_message())  # the help, which also says what to type next
    if error.ctx is not None and error.ctx.parent is None and arguments and not arguments[0].startswith("-"):
        return _explain_command(arguments[0], arguments[1:])
    if option is not None and (error.ctx is None or option in _OF_ALL):  # the option exists; its value is missing or extra
        wrong = "needs a value" if "requires" in error.message else "takes no value"
        return UsageError(
            f"{option} {wrong}", hint=f"{path} --help" if arguments[0].startswith("-") else f"gpucourse {arguments[0]} --help"
        )
    if option is not None and (command := _set_instead(option, arguments, session)) is not None:
        return UsageError(f"{option} is a parameter of the exercise, not an option", hint=command)
    if option is not None and not hasattr(error, "param"):
        known = [name for parameter in error.ctx.command.params for name in parameter.opts if name.startswith("--")]
        if (named := _name_with_dash(option, arguments, error.ctx)) is not None:
            return named
        return UsageError(
            f"there is no option {option}.{suggest(option, [*known, *_OF_ALL], least=0.65)}", hint=f"{path} --help"
        )
    if (missing := getattr(error, "param", None)) is not None and type(error).__name__ == "MissingParameter" and missing.help:
        needed = missing.help[0].lower() + missing.help[1:].rstrip(".")
        return UsageError(f"{path.removeprefix('gpucourse ')} needs {needed}", hint=f"{path} --help")
    message = error.format_message().replace("Value error, ", "").removesuffix(", unable to parse string as an integer")
    if wrong_choice := re.search(r"'([^']*)' is not one of (.*)", message):
        message += suggest(wrong_choice[1], re.findall(r"'([^']*)'", wrong_choice[2]))
    return UsageError(message, hint=f"{path} --help")


def _name_with_dash(option: str, arguments: Sequence[str], context: Any) -> UsageError | None:
    """Return the error for a file's name that was parsed as an option, with the corrected line; None for any other word."""
    name = next((word for word in arguments if word.startswith(option) and "." in word and "=" not in word), None)
    takes_name = any(parameter.param_type_name == "argument" for parameter in context.command.params)
    if name is None or not takes_name:
        return None
    rest = [word for word in arguments if word != name]
    return UsageError(
        f"{name} begins with a dash, so it is taken for an option", hint=shlex.join(["gpucourse", *rest, "--", name])
    )


def _explain_command(word: str, rest: Sequence[str]) -> UsageError:
    """Return the error for a word that is not a command; the hint shows an exercise's number, or the line with a similar
    command."""
    import difflib

    if _NUMBER.fullmatch(word) or word.isdecimal():
        return UsageError(f"there is no command '{word}'", hint=f"gpucourse show {word}")
    near = difflib.get_close_matches(word, COMMANDS, n=2)  # stricter than `suggest`: these words are short
    hint = shlex.join(["gpucourse", near[0], *rest]) if near else "gpucourse --help"
    return UsageError(f"there is no command '{word}'" + (f". Did you mean {' or '.join(near)}?" if near else ""), hint=hint)


def _set_instead(option: str, arguments: Sequence[str], session: Session) -> str | None:
    """Return the line with `--set name=value` for a parameter of the exercise that was typed as an option; else None."""
    number = next((word for word in arguments[1:] if _NUMBER.fullmatch(word)), None)
    name = option.removeprefix("--").partition("=")[0].replace("-", "_")
    try:
        if number is None or session.context.catalog.exercise(number)[1].parameter(name) is None:
            return None
    except (GpucourseError, OSError):
        return None
    place = next(index for index, word in enumerate(arguments) if word.partition("=")[0] == option)
    _, equals, value = arguments[place].partition("=")
    after = list(arguments[place + 1 :])
    if not equals:
        value = after.pop(0) if after and not after[0].startswith("--") else "VALUE"
    return shlex.join(["gpucourse", *arguments[:place], "--set", f"{name}={value}", *after])
