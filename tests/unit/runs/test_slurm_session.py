from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from gpucourse.context import Context
from gpucourse.remote.slurm_client import SessionState
from gpucourse.runs.slurm_session import _name_plan, _terminal
from tests.parts import need
from tests.unit.launch.test_slurm import make_plan, request
from tests.unit.ui.examples import deployment


def test_terminal_starts_in_the_folder_of_the_run_with_its_variables(context: Context, tmp_path: Path) -> None:
    """Run the line as sshd does, with a command that prints in place of srun."""
    (work := tmp_path / "it's work").mkdir()
    plan = _name_plan(make_plan(request({"kind": "slurm-pty"})), "20260131-142501-otter")
    program = (
        "import os; print(os.getcwd(), *(os.environ[name] for name in ('GPUCOURSE_OUT', 'TMPDIR', 'SLURM_JOB_NAME')), sep='|')"
    )
    command = replace(
        plan.commands[0], argv=("python", "-c", program), node=replace(plan.commands[0].node, python=sys.executable)
    )
    place = SessionState(rows=[], gpus=0, work=str(work), outputs="/o $HOME", places={"TMPDIR": "/t 1"})
    need("ssh")
    *words, line = _terminal(context.paths, deployment(), replace(plan, commands=(command,)), place)
    assert Path(words.pop(0)).name == "ssh"
    assert words == ["-tt", "-q", "-F", str(context.paths.stack("m3-local").ssh_config), "node0"]
    result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert result.stdout == f"{work}|/o $HOME|/t 1|2.9-otter\n"
