"""Runs commands in a process of their own, in a workspace that is not the person's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from gpucourse.errors import ExitCode


def type_command(environment: Mapping[str, str], *words: str) -> tuple[int, dict[str, Any]]:
    """Type a command of this program; its exit code and its JSON document. One that prints none gives its last words as an
    error document, and words that no command line can hold give the reason."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gpucourse", *words, "--json"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except (ValueError, OSError) as error:  # a null character, too long, no UTF-8: words of a bundle may be anything
        return int(ExitCode.USAGE), {"error": {"what": f"it cannot be typed: {error}"}}
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = {"error": {"what": done.stderr.decode(errors="replace").strip()[-2000:]}}
    return done.returncode, document if isinstance(document, dict) else {}
