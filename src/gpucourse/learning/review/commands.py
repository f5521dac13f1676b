"""Run commands in separate processes, in a workspace other than the user's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from gpucourse.errors import ExitCode


def type_command(environment: Mapping[str, str], *words: str) -> tuple[int, dict[str, Any]]:
    """Run a command of this program, and return its exit code and its JSON document. Without a document, return an error with
    the end of its stderr. If the words cannot be passed on a command line, return an error with the reason."""
    try:
        process = subprocess.run(
            [sys.executable, "-m", "gpucourse", *words, "--json"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except (ValueError, OSError) as error:  # words from a bundle may be anything: with a null character, too long, not UTF-8
        return int(ExitCode.USAGE), {"error": {"what": f"the command cannot be typed: {error}"}}
    try:
        document = json.loads(process.stdout)
    except ValueError:
        document = {"error": {"what": process.stderr.decode(errors="replace").strip()[-2000:]}}
    return process.returncode, document if isinstance(document, dict) else {}
