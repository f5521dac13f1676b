"""The architecture, as promises: imports go down only, a library has one home, files stay small, `--help` stays light."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.models import CommandInfo

from gpucourse.cli.app import tree

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "gpucourse"

FLOORS = {
    "errors": 0, "units": 0, "hardware": 0, "parallel": 0, "storage": 0, "outside": 0, "model": 0, "ports": 0, "__init__": 0,
    "course": 1, "workspace": 1, "launch": 1, "grading": 1, "figures": 1, "report": 1, "coach": 1,
    "provision": 2, "remote": 2, "local": 2, "aws": 2,
    "context": 3,
    "runs": 4,
    "labs": 5, "learning": 5,
    "cli": 6, "ui": 6, "__main__": 6,
}  # fmt: skip
GROUND = ["errors", "units", "hardware", "parallel", "storage", "outside", "model", "ports"]  # the order matters here
