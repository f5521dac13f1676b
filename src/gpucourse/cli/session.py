"""The objects of one command: its options, its console and, once it is needed, its workspace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gpucourse.errors import GpucourseError, UsageError
from gpucourse.ui.console import Console
from gpucourse.workspace.locate import find_root, open_workspace
from gpucourse.workspace.paths import WorkspacePaths
from gpucourse.workspace.trust import require_course, require_workspace

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.model.manifest import Exercise, Module
    from gpucourse.ui.tables import View


_MAX_WORD_LENGTH = 4096  # no path can be longer


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the whole program. `passed_on` are the words after `--`."""

    workspace: Path | None = None
    quiet: bool = False
    verbose: bool = False
    json: bool = False
    passed_on: tuple[str, ...] = ()


@dataclass
class Session:
    """The options, the console and, on first use, the workspace of one command."""

    options: Options
    console: Console
    creates: bool = False
    """True only for `init`, which creates the workspace that --workspace names."""
    is_watching: bool = False
    """True while `watch` reads keys: its messages then name keys instead of commands."""

    def __post_init__(self) -> None:
        self.console.log = self.log_file

    @cached_property
    def root(self) -> Path:
        """Return the workspace's folder, which may not exist yet."""
        return find_root(self.options.workspace, os.environ)

    @cached_property
    def context(self) -> Context:
        """Return the opened workspace and the course. A missing workspace is created, with a note, but a workspace that
        --workspace names must exist. Raises UntrustedFolder for another user's folder, and UsageError if there is no
        workspace."""
        return self._open(make=True)

    def look(self, *, with_note: bool = False) -> Context:
        """Return the context for a command that only reads. A missing workspace is not created; with `with_note`, a note says
        that it is missing."""
        if "context" not in vars(self) and not os.access(WorkspacePaths(self.root).identity, os.F_OK):
            context = self._open(make=False)
            if with_note:
                self.console.note(f"there is no workspace in {self.root}: gpucourse init makes one")
            return context
        return self.context

    def require_exercise(self, name: str) -> Exercise:
        """Return an exercise of the course. Unlike `context`, this makes no workspace. Raises UnknownName."""
        return self.look().catalog.exercise(name)[1]

    def require_module(self, name: str) -> Module:
        """Return a module of the course. Unlike `context`, this makes no workspace. Raises UnknownName."""
        return self.look().catalog.module(name)

    def _open(self, *, make: bool) -> Context:
        from gpucourse.context import Context
        from gpucourse.course.locate import find_course, find_named_course
        from gpucourse.labs.target import list_targets

        require_workspace(self.root, os.environ)
        if (course := find_named_course(os.environ)) is not None:
            require_course(course, os.environ)
        is_named = self.options.workspace is not None
        workspace = open_workspace(self.root, make=make, must_exist=is_named and not self.creates)
        if workspace.created:
            self.console.note(f"created a workspace in {self.root}")
        return Context(
            workspace=workspace,
            folders=find_course(os.environ),
            environ=os.environ,
            targets=list_targets(),
        )

    def present(self, view: View, document: object, *, paged: bool = False, place: str | None = None) -> None:
        """Show the result of the command: the document with --json, else the view. With `paged`, a view that is longer than the
        terminal is shown in the user's pager. With `place`, the view ends with the step of `find_step`."""
        self.console.document(document)
        if place is not None and not self.options.json:
            view = view._replace(next=self.find_step(place))
        self.console.show(view, paged=paged)

    def fail(self, errors: Sequence[GpucourseError]) -> None:
        """Show all errors except the most serious one, then raise that error, because it decides the exit code. Do nothing if
        there are no errors."""
        if errors:
            *milder, main_error = sorted(errors, key=lambda error: error.exit_code)
            for error in milder:
                self.console.error(error)
            raise main_error

    def find_step(self, place: str = "") -> str:
        """Return the command that `gpucourse next` suggests, or `gpucourse next` itself if a record cannot be read. `place`:
        the exercise or module that this command is about."""
        from gpucourse.learning.next_ import find_next_step

        step = "gpucourse next"
        with suppress(GpucourseError), self.console.guard("find the next step", except_for=(GpucourseError,)):
            step = find_next_step(self.look(), place).command
        return step

    def close(self) -> None:
        """Close the context, if the command used it."""
        if "context" in vars(self):
            self.context.close()

    def log_file(self) -> Path:
        """Return the file to which bugs of the program are logged. Make its folder if necessary."""
        log = self.context.paths.log
        log.parent.mkdir(parents=True, exist_ok=True)
        return log


def split(arguments: Sequence[str]) -> tuple[Options, list[str]]:
    """Return the program's own options, and the typed words without them. The words after `--` are for another program and do
    not change.

    `--json` is not removed, because only some commands accept it. Raises UsageError if a word is too long, or if --workspace
    has no folder.
    """
    words = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    foreign = list(arguments[len(words) :])
    if any(len(word) > _MAX_WORD_LENGTH for word in words):
        raise UsageError(f"an argument is longer than {_MAX_WORD_LENGTH} characters", hint="gpucourse --help")
    command_words: list[str] = []
    workspace: Path | None = None
    quiet = verbose = json = False
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name == "--workspace":
            if not equals and not words:
                raise UsageError("--workspace needs a folder", hint="gpucourse --workspace DIR ...")
            workspace = Path(value if equals else words.pop(0))
        elif word in {"--quiet", "-q"}:
            quiet = True
        elif word == "--verbose":
            verbose = True
        else:
            json = json or word == "--json"
            command_words.append(word)
    options = Options(workspace=workspace, quiet=quiet, verbose=verbose, json=json, passed_on=tuple(foreign[1:]))
    return options, command_words + foreign
