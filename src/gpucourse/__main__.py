"""The program: `gpucourse ...` and `python -m gpucourse ...`."""

from __future__ import annotations

import sys

from gpucourse.cli.boundary import run_command


def main() -> None:
    """Run the command that was typed and leave with its exit code."""
    sys.exit(run_command(sys.argv[1:]))


if __name__ == "__main__":
    main()
