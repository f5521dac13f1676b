"""The stack of simulated nodes passes its own checks; test_whole_run.py and test_recovery_nodes.py bring it up and down."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.system.provisioning import any_terraform
from tests.waiting import STUCK_S

pytestmark = pytest.mark.system

STACK = Path(__file__).parents[2] / "terraform" / "stacks" / "simulated"


def test_stack_passes_its_own_checks(tmp_path: Path) -> None:
    folder = tmp_path / "stacks" / "simulated"
    shutil.copytree(STACK, folder)
    shutil.copytree(STACK.parents[1] / "modules" / "slurm", tmp_path / "modules" / "slurm")
    for words in (["init", "-input=false"], ["fmt", "-check", "-recursive"], ["validate"], ["test"]):
        command = [*any_terraform().argv, *words]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=STUCK_S, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
