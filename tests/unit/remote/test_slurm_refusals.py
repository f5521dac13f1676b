"""The errors for refusals of Slurm's commands. agent/slurm/test_words_releases.py has the messages of real releases."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

from gpucourse.errors import GpucourseError, InfrastructureError, MissingError, UsageError
from gpucourse.model.node import Node
from gpucourse.remote.slurm_refusals import explain

HEAD = Node(
    name="node0", role="head", address="203.0.113.1", port=22, private_address="10.0.0.1", user="me", gpus=0,
    instance_type="t3.medium", python="/usr/bin/python3", mode="local",
)  # fmt: skip


@pytest.mark.parametrize(
    ("message", "kind", "words"),
    [
        ("munged is gone: no process listens at /run/munge/munge.socket.2", InfrastructureError, "munged does not answer"),
        ("slurm_load_jobs error: Protocol authentication error", InfrastructureError, "munge.key"),
        ("squeue: error: Unable to unpack: Expired credential", InfrastructureError, "clocks"),
        ("squeue did not answer within 30 s", InfrastructureError, "slurmctld"),
        ("sinfo: command not found", MissingError, "were not found"),
        ("sbatch: error: Batch job submission failed: Requested time limit is invalid", UsageError, "time limit"),
        ("sbatch: error: Batch job submission failed: Invalid account or combination", UsageError, "accounting"),
        (
            "sbatch: error: Batch job submission failed: Invalid job array specification",
            UsageError,
            "the highest is its MaxArraySize minus one",
        ),
        (
            "sbatch did not answer within 30 s: sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
            InfrastructureError,
            "MaxJobCount",
        ),
        (
            "sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job submission failed: Requested "
            "node configuration is not available",
            UsageError,
            "asks for more memory than any node",
        ),
        (
            "sbatch: error: Batch job submission failed: Invalid node name specified",
            UsageError,
            "something that this cluster does not have",
        ),
        ("sbatch: error: the moon is in the wrong house", UsageError, "the moon is in the wrong house"),
    ],
)
def test_explain_names_what_is_broken_and_its_cure(message: str, kind: type[GpucourseError], words: str) -> None:
    error = explain(HEAD, message)
    assert type(error) is kind
    assert words in error.what
    assert error.hint


def test_explain_on_a_cluster_names_what_it_lacks_and_its_own_login() -> None:
    login = replace(HEAD, mode="slurm", typed="me@uni", way="openssh")
    error = explain(login, "Invalid node name specified")
    assert type(error) is MissingError
    assert error.hint.startswith("ssh me@uni -- \"sinfo -N -o '%N %G %f'\" shows")


@pytest.mark.parametrize(
    ("message", "formats"),
    [
        ("Invalid node name specified", "%N %G %f"),
        ("Memory specification can not be satisfied", "%N %m"),
        ("Requested node configuration is not available", "%N %G %c"),
        ("Requested time limit is invalid", "%P %l"),
    ],
)
def test_explain_hints_at_a_command_that_shells_pass_on_unchanged(message: str, formats: str) -> None:
    command = re.search(r"gpucourse ssh .* (?=shows)", explain(HEAD, message).hint or "")
    assert command
    sent_by_ssh = " ".join(shlex.split(command[0])[4:])
    assert shlex.split(sent_by_ssh)[-2:] == ["-o", formats]
