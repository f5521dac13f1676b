"""Show a long text in the user's pager: the program in $PAGER, otherwise less."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Mapping

# Exit if the text fits, show colours, and leave the text on the screen, as git does. Less alone prompts with a colon.
_FLAGS_OF_LESS = "FRXPs space shows more, q ends $"


def show_in_pager(text: str, environ: Mapping[str, str]) -> bool:
    """Show the text in the pager until the user closes it. Return False, and show nothing, if there is no keyboard, if no
    pager can be started, or if $PAGER is empty or `cat`."""
    import shutil
    import subprocess

    try:
        words = shlex.split(environ.get("PAGER", "less"))
    except ValueError:
        return False
    program = shutil.which(words[0], path=environ.get("PATH")) if words and words != ["cat"] else None
    if program is None or not sys.stdin.isatty():
        return False
    try:
        process = subprocess.Popen(
            [program, *words[1:]],
            stdin=subprocess.PIPE,
            env={"LESS": _FLAGS_OF_LESS, **environ},
            encoding="utf-8",
            errors="replace",
        )
    except OSError:  # such as a script without #!
        return False
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # from here on, Ctrl-C is for the pager
    try:
        process.communicate(text)
    finally:
        signal.signal(signal.SIGINT, handler)
    return True
