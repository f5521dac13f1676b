"""Options that every command accepts, anywhere in the line: `gpucourse status --workspace DIR` works, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpucourse.errors import UsageError

_LONGEST_WORD = 4096  # no path can be longer


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the whole program. `passed_on` are the words after `--`."""

    workspace: Path | None = None
    quiet: bool = False
    verbose: bool = False
    json: bool = False
    passed_on: tuple[str, ...] = ()


def split(arguments: Sequence[str]) -> tuple[Options, list[str]]:
    """Remove the program's own options from the line, up to `--`; the words after it are for another program.

    `--json` is not removed: only some commands accept it. Raises UsageError.
    """
    own = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    foreign = list(arguments[len(own) :])
    if any(len(word) > _LONGEST_WORD for word in own):
        raise UsageError(f"an argument is longer than {_LONGEST_WORD} characters", hint="gpucourse --help")
    rest: list[str] = []
    workspace: Path | None = None
    quiet = verbose = json = False
    while own:
        word = own.pop(0)
        if word == "--workspace":
            if not own:
                raise UsageError("--workspace needs a folder", hint="gpucourse --workspace DIR ...")
            workspace = Path(own.pop(0))
        elif word.startswith("--workspace="):
            workspace = Path(word.partition("=")[2])
        elif word in {"--quiet", "-q"}:
            quiet = True
        elif word == "--verbose":
            verbose = True
        else:
            json = json or word == "--json"
            rest.append(word)
    options = Options(workspace=workspace, quiet=quiet, verbose=verbose, json=json, passed_on=tuple(foreign[1:]))
    return options, rest + foreign
