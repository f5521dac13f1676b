"""What a proof runs on: GPUs, their row in the course's table, versions, and processes that end with it."""

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
    """What the proof runs on: the name and number of its GPUs (None and 0 without one), a row of gpus.json, the versions."""

    gpu: str | None
    gpus: int
    sheet: Mapping[str, Any]
    versions: Mapping[str, str | None]


def look(shared: Path) -> Machine:
    """Return the machine, asked by a process of its own: one that has looked at a GPU holds a part of its memory.

    `shared` is the folder of the exercises' own gpus.py. Raises CalledProcessError if torch is missing."""
    words = [sys.executable, "-c", ASK, str(shared)]
    return Machine(**json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout))


def list_lacking(exercise: Exercise) -> list[str]:
    """Return the programs and packages of an exercise that are not here."""
    programs = [name for name in exercise.programs if shutil.which(name) is None]
    return programs + [name for name in exercise.packages if importlib.util.find_spec(name) is None]


def find_free_port() -> int:
    """Return a TCP port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def versions_of(machine: Machine) -> str:
    """Return the versions in one line."""
    return " · ".join(f"{name} {version}" for name, version in machine.versions.items() if version)


def end_with(parent: int) -> Callable[[], None]:
    """Return what a new process calls to get SIGTERM when its parent ends: Linux alone has it."""
    prctl = ctypes.CDLL(None).prctl  # loaded before the fork

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the call
            os._exit(1)

    return ask
