"""What Slurm's commands refuse with is recognised, and told with the way back."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import GpucourseError, InfrastructureError, MissingError, UsageError
from gpucourse.model.node import Node
from gpucourse.remote.slurm_says import explained

DATA = Path(__file__).parents[2] / "data" / "slurm" / "22.05.8"
HEAD = Node(
    name="node0", role="head", address="203.0.113.1", port=22, private_address="10.0.0.1", user="me", gpus=0,
    instance_type="t3.medium", python="/usr/bin/python3", mode="local",
)  # fmt: skip


def refusals() -> dict[str, str]:
    """What was recorded, by the command."""
    blocks = (DATA / "refusals.txt").read_text().split("## ")[1:]
    return {block.partition("\n")[0]: block.partition("\n")[2] for block in blocks}


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("sbatch --gres=gpu:2", "no set of nodes of this cluster can ever give"),
        ("sbatch -N4", "no set of nodes of this cluster can ever give"),
        ("sbatch -p cpu", "no such partition"),
        ("sbatch --bogus=1", "does not understand the file"),
        ("sbatch --time=xx", "does not understand the file"),
        ("sbatch --array=9-x", "does not understand the file"),
        ("no shebang", "does not understand the file"),
        ("sbatch --dependency=bogus:1", "Job dependency problem"),
    ],
)
def test_a_wrong_wish_is_wrong_usage(typed: str, words: str) -> None:
    error = explained(HEAD, refusals()[typed])
    assert type(error) is UsageError
    assert words in error.what
    assert error.hint
    assert "\n" not in error.what


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ((DATA / "squeue-controller-down.txt").read_text(), InfrastructureError, "slurmctld"),
        ((DATA / "squeue-munge-down.txt").read_text(), InfrastructureError, "munged does not answer"),
        ("slurm_load_jobs error: Protocol authentication error", InfrastructureError, "munge.key"),
        ("squeue: error: Unable to unpack: Expired credential", InfrastructureError, "clocks"),
        ("squeue did not answer within 30 s", InfrastructureError, "slurmctld"),
        ("sinfo: command not found", MissingError, "not there"),
        ("sbatch: error: Batch job submission failed: Requested time limit is invalid", UsageError, "time limit"),
        ("sbatch: error: Batch job submission failed: Invalid account or combination", UsageError, "accounting"),
        ("sbatch: error: the moon is in the wrong house", UsageError, "the moon is in the wrong house"),
    ],
)
def test_what_is_broken_is_named_with_the_way_back(said: str, kind: type[GpucourseError], words: str) -> None:
    error = explained(HEAD, said)
    assert type(error) is kind
    assert words in error.what
    assert error.hint


def test_long_words_are_cut() -> None:
    assert len(explained(HEAD, "x" * 5000).what) < 400
