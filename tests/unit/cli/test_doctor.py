from __future__ import annotations

import json

from tests.learning import Learning


def test_doctor_of_this_machine_refuses_the_options_of_an_account(learning: Learning) -> None:
    message = learning.types("doctor", "--gpu", "t4", "--ssh-cidr", "203.0.113.7/32", code=2).err
    assert "--gpu and --ssh-cidr: only with --target aws" in message
    assert "gpucourse doctor --target aws --gpu --ssh-cidr" in message


def test_doctor_policy_prints_a_policy_of_the_region(learning: Learning) -> None:
    policy = json.loads(learning.types("doctor", "--policy", "--region", "us-east-2").out)
    assert learning.types("doctor", "--policy", "--json").document["policy"] == policy
    assert "arn:aws:" in json.dumps(policy)
