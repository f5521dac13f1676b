"""The program: `gpucourse ...` and `python -m gpucourse ...`."""

from __future__ import annotations

import gc
import os
import sys

# A command makes some 100,000 objects and leaves few behind: looking for circles among them every 700 takes a tenth of the time
# of `status`, and every 50,000 still 35 ms of `run`.
gc.set_threshold(150_000)

from gpucourse.cli.boundary import run_command  # noqa: E402 (after the line above, which is for what this imports)


def main() -> None:
    """Run the command that was typed and leave with its exit code."""
    # Nobody else writes to what this program makes, or Terraform and the host of the nodes, which inherit this umask.
    os.umask(os.umask(0o077) | 0o022)
    code = run_command(sys.argv[1:])
    gc.freeze()  # Python looks through everything for circles before it leaves, which takes 50 ms
    sys.exit(code)


if __name__ == "__main__":
    main()
