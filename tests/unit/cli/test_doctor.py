from __future__ import annotations

import json

import pytest

from tests.learning import Learning


def test_doctor_of_this_machine_refuses_the_options_of_an_account(learning: Learning) -> None:
    message = learning.types("doctor", "--gpu", "t4", "--ssh-cidr", "203.0.113.7/32", code=2).err
    assert "--gpu and --ssh-cidr: only with --target aws" in message
    assert "gpucourse doctor --target aws --gpu --ssh-cidr" in message


def test_doctor_policy_prints_a_policy_of_the_region(learning: Learning) -> None:
    policy = json.loads(learning.types("doctor", "--policy", "--region", "us-east-2").out)
    assert learning.types("doctor", "--policy", "--json").document["policy"] == policy
    assert "arn:aws:" in json.dumps(policy)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("doctor --login me@uni", "--login and --cluster: only with --target slurm"),
        ("doctor --target slurm --gpu a100", "--gpu: only with --target aws"),
        ("doctor --target slurm --cluster uni", "no Slurm cluster 'uni'"),
    ],
)
def test_doctor_refuses_options_of_another_target(learning: Learning, line: str, reason: str) -> None:
    refused = learning.types(*line.split(), code=2)
    assert reason in refused.err
