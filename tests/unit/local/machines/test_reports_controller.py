"""Slurm's own commands beside its daemons, with programs that a test writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.local.machines.reports import SlurmController

STATES = {"node0": "", "node1": "", "node2": "it is off"}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name in ("sinfo", "squeue", "scontrol"):
        write(tmp_path / name, "")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def make_controller(programs: Path) -> SlurmController:
    return SlurmController({"PATH": f"{programs}:/usr/bin:/bin"})


def test_judge_nodes_joins_daemons_slurm_and_held_jobs(programs: Path) -> None:
    write(programs / "sinfo", "printf 'node0|idle|gpu:1|none\\nnode1|drained|gpu:1|bad fan\\nnode2|idle|gpu:1|none\\n'")
    write(programs / "squeue", "echo '7|launch failed requeued held'")
    assert make_controller(programs).judge_nodes(STATES, "node0", {}) == {
        "node0": "Slurm holds job 7 because it failed to start",
        "node1": "Slurm says drained: bad fan",
        "node2": "it is off",
    }


def test_resume_repeats_until_the_node_is_in_use(programs: Path) -> None:
    file = programs / "said"
    write(programs / "sinfo", f"[ -e '{file}' ] && echo 'node1|idle|gpu:1|none' || echo 'node1|drained|gpu:1|x'")
    write(programs / "scontrol", f"echo \"$*\" >> '{file}'")
    make_controller(programs).resume("node1")
    assert file.read_text() == "update nodename=node1 state=resume\n"
