"""Runs commands in a separate process, in a workspace that is not the person's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from gpucourse.errors import ExitCode


def type_command(environment: Mapping[str, str], *words: str) -> tuple[int, dict[str, Any]]:
    """Run a command of this program; return its exit code and its JSON document. If it prints none, the document is an error
    with the end of its stderr; if no command line can hold the words, an error with the reason."""
    try:
        process = subprocess.run(
            [sys.executable, "-m", "gpucourse", *words, "--json"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except (ValueError, OSError) as error:  # a null character, too long, no UTF-8: words of a bundle may be anything
        return int(ExitCode.USAGE), {"error": {"what": f"it cannot be typed: {error}"}}
    try:
        document = json.loads(process.stdout)
    except ValueError:
        document = {"error": {"what": process.stderr.decode(errors="replace").strip()[-2000:]}}
    return process.returncode, document if isinstance(document, dict) else {}
