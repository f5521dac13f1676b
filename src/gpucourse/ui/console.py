"""Write the output of one command: its results, notes and errors. Each goes to its own stream, in a form that this stream can
show."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import UNSET, Struct, UnsetType

from gpucourse.errors import GpucourseError, ManifestError
from gpucourse.guard import guard
from gpucourse.model.node import is_simulated
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.out import Out
from gpucourse.ui.pager import show_in_pager
from gpucourse.ui.tables import Cell, View
from gpucourse.ui.text import clean, wrap

if TYPE_CHECKING:
    from gpucourse.ui.live import Live

SIMULATED = "simulated nodes (mode: local)"
_RAW_IN_JSON = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]")


class ErrorDocument(Struct):
    """An error as --json prints it. `code` is a stable word; `hint` says what to type next."""

    code: str
    what: str
    hint: str
    log: str | None
    exit_code: int
    traceback: str | UnsetType = UNSET


class FailureDocument(Struct):
    """The document of a command that failed before it printed its own document."""

    error: ErrorDocument


def describe_errors(errors: Sequence[GpucourseError]) -> ErrorDocument:
    """Combine several errors into one: the most serious error, with the messages of all of them."""
    main_error = max(errors, key=lambda error: error.exit_code)
    return ErrorDocument(
        code=main_error.code,
        what="\n".join(clean(error.what) for error in errors),
        hint=clean(main_error.hint),
        log=clean(str(main_error.log)) if main_error.log is not None else None,
        exit_code=int(main_error.exit_code),
    )


class Console:
    """Write results to standard output, and notes, warnings, errors, progress and logs to standard error.

    `json`: standard output receives one JSON document and nothing else.
    `quiet`: only warnings, errors and the headline of a result are shown, or the whole result if it has no headline.
    `verbose`: all details are shown, and errors have their traceback.
    `log`: a function that returns the file in which failures of the display are logged, if there is one.

    A terminal shows colour unless NO_COLOR is set, and lines that change in place unless TERM=dumb.
    """

    def __init__(
        self, *, json: bool, quiet: bool, verbose: bool, stdout: TextIO, stderr: TextIO, environ: Mapping[str, str]
    ) -> None:
        self.json, self.quiet, self.verbose = json, quiet, verbose
        self.out, self.err = Out(stdout), Out(stderr)
        self._environ = environ
        self._dumb = environ.get("TERM", "") in {"dumb", "unknown"}
        self._colourless = bool(environ.get("NO_COLOR"))
        self._columns = environ.get("COLUMNS", "")
        self._places_with_mode: set[object] = set()
        self.log: Callable[[], Path] | None = None
        self._documented = False

    def width(self, out: Out) -> int | None:
        """Return the number of columns of the terminal behind this stream, at least 40, or None for a pipe."""
        if not out.terminal:
            return None
        return max(40, int(self._columns) if self._columns.isdecimal() and self._columns != "0" else out.size()[0])

    def colour(self, out: Out) -> bool:
        """Return whether this stream shows colours."""
        return out.terminal and not self._dumb and not self._colourless

    def can_redraw(self, out: Out) -> bool:
        """Return whether this stream shows lines that change in place."""
        return out.terminal and not self._dumb

    def show(self, view: View, *, paged: bool = False) -> None:
        """Write a result to standard output. With --json, write nothing, because the document is the result. With `paged`, show
        a result that is longer than the terminal in the user's pager."""
        if self.json:
            return
        if self.quiet and view.headline is not None:
            view = View(headline=view.headline)
        elif view.mode:
            self._say_mode(view.mode, self.out)
        from gpucourse.ui.render import render  # imports rich, which --help does not need

        page = render(view, width=self.width(self.out), colour=self.colour(self.out))
        if (
            paged
            and self.can_redraw(self.out)
            and page.count("\n") >= self.out.size()[1]
            and show_in_pager(page, self._environ)
        ):
            return
        self._write(self.out, self._gap(self.out) + page)

    def document(self, obj: object) -> None:
        """Write the command's only JSON document to standard output, with `version` first. Without --json, write nothing, since
        the view shows the result."""
        if not self.json:
            return
        from gpucourse.workspace.files import to_json, to_plain

        text = to_json({"version": 1} | _make_encodable(to_plain(obj))).decode()
        safe = _RAW_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
        if self.out.encoding.lower().replace("-", "") != "utf8":
            import json

            safe = json.dumps(json.loads(safe), indent=2) + "\n"
        self._documented = True
        self._write(self.out, safe)

    def text(self, text: str) -> None:
        """Write a result for another program, such as a table for a spreadsheet, to standard output unchanged."""
        self._write(self.out, text)

    def mode(self, mode: str, lacks: str = "") -> None:
        """If the nodes are simulated, say so once, and say what such a lab lacks."""
        if not self.quiet:
            self._say_mode(mode, self.err)
            if lacks:
                self.note(lacks)

    def line(self, cell: Cell) -> None:
        """Write a sentence about one step of a series, in its style. The sentence appears with --quiet too."""
        self._sentence(cell.text, cell.style)

    def note(self, text: str) -> None:
        """Write a sentence for the person, unless --quiet is set."""
        if not self.quiet:
            self._sentence(text, "dim")

    def warn(self, text: str) -> None:
        """Write a sentence that must not be missed."""
        self._sentence(text, "warn", f"{UNICODE.error} ")

    def error(self, error: GpucourseError) -> None:
        """Write what happened, what to type next, and the path of the log. With --json, write them as the command's document.
        Never raises."""
        if self.json and not self._documented and not self.out.closed:
            self._error_document(error)
            return
        if self.verbose:
            self._write(self.err, _traceback(error))
        width = self.width(self.err)
        # A complaint about a file begins its line with `file:`, so that editors can jump to it.
        complaints = error.complaints if isinstance(error, ManifestError) else ()
        lines = [line for text in complaints for line in wrap(clean(text), width, indent="  ")]
        texts = [("\n".join(lines or wrap(clean(error.what), width)), "error")]
        if error.hint:
            texts.append(("\n".join(wrap(clean(error.hint), width, first=f"{UNICODE.arrow} ")), "accent"))
        if error.log is not None:
            texts.append(("\n".join(wrap(f"log: {clean(str(error.log))}", width, first="  ")), "dim"))
        self._print(self.err, *texts)

    def ask(self, question: str, answers: TextIO) -> bool:
        """Ask the person a question and read a line from `answers`. Return True for yes, and False for anything else."""
        lines = wrap(f"{clean(question)} [y/N]", self.width(self.err))
        self._write(self.err, self._gap(self.err) + "\n".join(lines) + " ")
        answer = answers.readline()
        if not answer.endswith("\n"):  # Ctrl-D leaves the cursor where it is
            self._write(self.err, "\n")
        return answer.strip().lower() in {"y", "yes"}

    def watch(self, *, brief: bool = False) -> Live:
        """Return the watcher of a long command, a context manager that shows progress and logs on standard error. With `brief`,
        lines about successes do not stay on the screen."""
        from gpucourse.ui.live import Live

        return Live(
            self.err,
            colour=self.colour(self.err),
            moving=self.can_redraw(self.err),
            quiet=self.quiet,
            verbose=self.verbose,
            brief=brief,
            log=self.log,
        )

    def guard(self, part: str, *, except_for: tuple[type[Exception], ...] = ()) -> AbstractContextManager[None]:
        """Return a context manager that turns a failure of its block into a line in the log and a warning, so that the command
        continues.

        `part` completes the sentence "could not ..."; the errors in `except_for` are raised.
        """
        return guard(part, self.log, self.warn, except_for=except_for)

    def _error_document(self, error: GpucourseError) -> None:
        document = describe_errors([error])
        if self.verbose:
            document.traceback = _traceback(error)
        try:
            self.document(FailureDocument(error=document))
        except GpucourseError:  # standard output goes to a full disk, so the error is shown on the other stream
            self.error(error)

    def _say_mode(self, mode: str, out: Out) -> None:
        place = "terminal" if out.terminal else out.place
        if is_simulated(mode) and place not in self._places_with_mode:
            self._places_with_mode.add(place)
            self._print(out, (f"{self._gap(out)}{SIMULATED}\n", "warn"))

    def _gap(self, out: Out) -> str:
        """Return a blank line if there is text directly above. On a terminal, both streams count as one page."""
        page = [stream for stream in (self.out, self.err) if stream.terminal]
        return "\n" if out.terminal and not max(page, key=lambda stream: stream.written_at).apart else ""

    def _sentence(self, text: str, style: str, lead: str = "") -> None:
        lines = wrap(clean(text), self.width(self.err), first=lead)
        self._print(self.err, ("\n".join(lines), style))

    def _print(self, out: Out, *texts: tuple[str, str]) -> None:
        """Write texts, each in its style, one below another."""
        from gpucourse.ui.styles import draw, line

        self._write(out, draw(*map(line, texts), colour=self.colour(out)))

    def _write(self, out: Out, text: str) -> None:
        from gpucourse.storage import storage_error

        try:
            out.write(text)
        except OSError as error:
            if out is self.err:
                return
            raise storage_error(error, Path("/dev/stdout")) or error from error


def _traceback(error: BaseException) -> str:
    import traceback

    return clean("".join(traceback.format_exception(error)))


def _make_encodable(value: Any) -> Any:
    """Return plain data with every text changed so that it can be encoded in UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_make_encodable(key): _make_encodable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_make_encodable(item) for item in value]
    return value
