"""The code of exercises and the recorded data that pictures follow."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

EXERCISES = Path(__file__).parents[2] / "exercises"


def load(folder: str, name: str) -> Any:
    """Return a file in a module's folder of the exercises, as a Python module."""
    places = [str(EXERCISES / folder), str(EXERCISES / "shared")]
    sys.path[:0] = places
    try:
        return importlib.import_module(name)
    finally:
        for place in places:
            sys.path.remove(place)


def locate_record(name: str) -> Path:
    """Return the file with recorded data, next to this one."""
    return Path(__file__).with_name(f"{name}.json")


def read_data(file: Path) -> Any:
    """Return the content of a JSON file."""
    return json.loads(file.read_text(encoding="utf-8"))


def write_record(name: str, document: object) -> None:
    """Store recorded data."""
    locate_record(name).write_text(json.dumps(document) + "\n", encoding="utf-8")
    sys.stdout.write(f"written: {locate_record(name)}\n")
