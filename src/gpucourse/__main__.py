"""The entry point of the program, for both `gpucourse ...` and `python -m gpucourse ...`."""

from __future__ import annotations

import os
import signal
import sys


def _leave(_number: int, _frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)  # the same exit code as `run_command`; no process has been started yet that would have to be ended


_before = signal.getsignal(signal.SIGINT)
if _before is signal.default_int_handler:  # not if Ctrl-C is ignored, as with nohup
    signal.signal(signal.SIGINT, _leave)

from gpucourse.cli.boundary import run_command  # noqa: E402 (after the lines above, which handle Ctrl-C during this slow import)

signal.signal(signal.SIGINT, _before)


def main() -> None:
    """Run the command that was typed and exit with its code."""
    # Only this user may write to the files of this program, of Terraform and of the nodes' host: both inherit this umask.
    os.umask(os.umask(0o077) | 0o022)
    sys.exit(run_command(sys.argv[1:]))


if __name__ == "__main__":
    main()
