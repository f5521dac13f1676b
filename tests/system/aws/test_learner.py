"""The learner that the other tests here use: what is behind an instance looks like a node after its first boot."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.mock_aws.asking import describe_instance, launch, network
from tests.parts import need
from tests.simulated import make_key
from tests.system.aws.learner import CloudLearner
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


def test_a_computer_has_first_boot_marks_and_an_address_for_the_others(learner: CloudLearner, tmp_path: Path) -> None:
    key = make_key(tmp_path / "key")
    public = key.with_suffix(".pub").read_bytes()
    learner.account.client("ec2").import_key_pair(KeyName="learner", PublicKeyMaterial=public)
    instance = launch(learner.account, KeyName="learner", SubnetId=network(learner.account)[1])
    address = describe_instance(learner.account, instance)["PrivateIpAddress"]
    until(lambda: instance in learner.account.computers(), "it boots")
    state = Path(learner.account.computers()[instance]["root"]) / "var/lib/gpucourse"
    assert (state / "step").read_text() == "done\n"
    assert json.loads((state / "ready").read_text())["gpus"] == []
    options = ["-F", "none", "-i", str(key), "-o", f"ProxyCommand={learner.account.proxy_command}"]
    options += ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"]
    command = 'cat "$GPUCOURSE_NODE_ROOT"/var/lib/gpucourse/deadline'
    said = subprocess.run(
        [need("ssh"), *options, f"ubuntu@{address}", command], capture_output=True, text=True, timeout=STUCK_S, check=False
    )
    assert said.stdout == (state / "deadline").read_text(), said.stderr
    assert address.startswith("127.")
