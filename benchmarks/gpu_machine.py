"""The machine of the GPU benchmark: its GPUs, their row in the course's table, its versions, and processes that end with their
parent.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucourse.model.manifest import Exercise

_PR_SET_PDEATHSIG = 1
ASK = """
import dataclasses, importlib.metadata, json, platform, sys, torch
sys.path.append(sys.argv[1])
import gpus, nvidia_smi
count = torch.cuda.device_count() if torch.cuda.is_available() else 0
name = torch.cuda.get_device_name(0) if count else None
sheet = gpus.find(name) if count else None
driver = (nvidia_smi.query(("driver_version",)) or [{}])[0].get("driver_version") if count else None
try:
    transformers = importlib.metadata.version("transformers")
except importlib.metadata.PackageNotFoundError:
    transformers = None
versions = {"torch": torch.__version__, "cuda": torch.version.cuda, "driver": driver, "transformers": transformers,
            "python": platform.python_version()}
print(json.dumps({"gpu": name, "gpus": count, "sheet": dataclasses.asdict(sheet) if sheet else {}, "versions": versions}))
"""


@dataclass(frozen=True)
class Machine:
    """The machine: the name and number of its GPUs (None and 0 without a GPU), their row of gpus.json, and the versions."""

    gpu: str | None
    gpus: int
    sheet: Mapping[str, Any]
    versions: Mapping[str, str | None]


def look(shared: Path) -> Machine:
    """Return the facts about the machine. A separate process finds them, because a process that has used a GPU keeps some of
    its memory.

    `shared` is the folder of the exercises' own gpus.py. Raises CalledProcessError if torch is missing.
    """
    words = [sys.executable, "-c", ASK, str(shared)]
    return Machine(**json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout))


def list_lacking(exercise: Exercise) -> list[str]:
    """Return the programs and packages of an exercise that are not installed here."""
    programs = [name for name in exercise.programs if shutil.which(name) is None]
    return programs + [name for name in exercise.packages if importlib.util.find_spec(name) is None]


def find_free_port() -> int:
    """Return a free TCP port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def versions_of(machine: Machine) -> str:
    """Return the versions in one line."""
    return " · ".join(f"{name} {version}" for name, version in machine.versions.items() if version)


def end_with(parent: int) -> Callable[[], None]:
    """Return a function that a new process calls so that it receives SIGTERM when its parent ends (Linux only)."""
    prctl = ctypes.CDLL(None).prctl  # loaded before the fork

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the call
            os._exit(1)

    return ask
