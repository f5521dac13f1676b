"""Report every error: two lines on the screen, the right exit code and, for a bug in gpucourse, a traceback in the log."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from gpucourse.cli.session import Options, Session, split
from gpucourse.errors import ExitCode, GpucourseError, Interrupted, MissingError, StorageError, UsageError
from gpucourse.outside.names import printable
from gpucourse.storage import find_home
from gpucourse.ui.console import Console
from gpucourse.workspace.locate import find_current_folder

_INSTALL, _SHOW = "--install-completion", "--show-completion"
_SHELLS = ("bash", "zsh", "fish")


def run_command(arguments: Sequence[str]) -> int:
    """Report every error: print two lines on the screen, return the right exit code and, for a bug in gpucourse, write a
    traceback to the log."""
    session = _make_session(Options(json="--json" in arguments))
    try:
        options, words = split(arguments)
        session = _make_session(options)
        with _handle_signals(), closing(session):
            return _dispatch(words, session)
    except BrokenPipeError:
        # The reader of the output is gone (`| head`). Python would complain again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.DONE)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (the boundary: an unknown error is a bug, and is reported)
        failure = _find_failure(error, session)
        session.console.error(failure)
        return int(failure.exit_code)


def _find_failure(error: Exception | KeyboardInterrupt, session: Session) -> GpucourseError:
    """Return the error to show. An unexpected error is shown as a bug in gpucourse."""
    if isinstance(error, GpucourseError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted")
    explanation = _explain(error) if isinstance(error, OSError) else None
    return explanation or _log_fault(error, session)


def _dispatch(arguments: list[str], session: Session) -> int:
    import typer

    from gpucourse.cli.app import tree

    # typer bundles click under a private name that has changed; its public BadParameter is a subclass of click's usage error.
    wrong_usage: Any = typer.BadParameter.__bases__[0]
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if arguments and arguments[0] in {_INSTALL, _SHOW} and "--help" not in arguments:
        return _complete_shell(*arguments)
    try:
        result = typer.main.get_command(tree(arguments[0] if arguments else None)).main(
            arguments, prog_name="gpucourse", standalone_mode=False, obj=session
        )
    except wrong_usage as error:
        from gpucourse.cli.help import explain

        raise explain(error, arguments, session) from error
    except typer.Abort:
        raise KeyboardInterrupt from None
    if result == ExitCode.INTERRUPTED:  # newer versions of typer return this after Ctrl-C
        raise KeyboardInterrupt
    return int(result) if isinstance(result, int) else 0


def _complete_shell(option: str, shell: str = "", *_extra_words: str) -> int:
    """Install or print completion for a shell. The default is the shell in `$SHELL`, not the parent process, which may be the
    sh that runs a script.

    Raises UsageError for a shell that has no completion, and StorageError if the shell's files cannot be written.
    """
    from typer import _completion_shared as completion  # its public callers use the shell of the parent process

    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        reason = f"not for {printable(name, 40)}" if name else "and $SHELL is not set"
        raise UsageError(f"completion exists for {', '.join(_SHELLS)}, {reason}", hint=f"gpucourse {option} bash")
    if option == _SHOW:
        variable = "_GPUCOURSE_COMPLETE"
        sys.stdout.write(completion.get_completion_script(prog_name="gpucourse", complete_var=variable, shell=name) + "\n")
        return int(ExitCode.DONE)
    find_home(os.environ, f"gpucourse {_SHOW}")
    try:
        _, file = completion.install(shell=name, prog_name="gpucourse")
    except OSError as error:
        if error.filename is None:  # an error in writing to the screen, not to a file
            raise
        problem = f"cannot write {printable(str(error.filename), 4096)}: {error.strerror}"
        raise StorageError(problem, hint=f"gpucourse {_SHOW} {name} prints what to write there") from error
    sys.stdout.write(f"Completion for {name} is installed in {file}. It works in every new terminal.\n")
    return int(ExitCode.DONE)


def _make_session(options: Options) -> Session:
    console = Console(
        json=options.json,
        quiet=options.quiet,
        verbose=options.verbose,
        stdout=sys.stdout,
        stderr=sys.stderr,
        environ=os.environ,
    )
    return Session(options=options, console=console)


@contextmanager
def _handle_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP (a closed terminal) end the program as Ctrl-C does, so that everything is recorded."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    handlers = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _explain(error: OSError) -> GpucourseError | None:
    """Return an explanation if too many files are open, a name is too long for the file system, or the current folder has been
    removed; otherwise return None."""
    if error.errno == errno.EMFILE:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return MissingError(f"this needs more than {limit} open files, the limit of this shell", hint="ulimit -n 4096")
    if error.errno == errno.ENAMETOOLONG:
        return UsageError(f"a name is too long for a file: {printable(str(error.filename), 80)}", hint="gpucourse --help")
    if isinstance(error, FileNotFoundError) and error.filename is None:  # then the system means the current folder
        try:
            find_current_folder()
        except MissingError as missing:
            return missing
    return None


def _log_fault(error: Exception, session: Session) -> GpucourseError:
    """Write the traceback of a bug in gpucourse to the workspace's log, or to a temporary file if there is no log, and return
    the error to show."""
    import tempfile
    import traceback

    text = "".join(traceback.format_exception(error))
    try:
        log = session.log_file()
        with log.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{' '.join(sys.argv)}\n{text}\n")
    except (OSError, GpucourseError):
        handle, name = tempfile.mkstemp(prefix="gpucourse-", suffix=".log")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        log = Path(name)
    return GpucourseError(
        f"a bug in gpucourse: {type(error).__name__}: {error}",
        hint="no record is lost; --verbose shows where it happened",
        log=log,
    )
