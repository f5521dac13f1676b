"""The mock AWS account: real SSH to the machines behind its instances, by addresses that nobody could reach."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpucourse.local import processes
from tests.mock_aws.account import Account, mock_account
from tests.mock_aws.asking import describe_instance, launch
from tests.parts import need
from tests.simulated import make_key
from tests.waiting import STUCK_S, until

pytestmark = [pytest.mark.system, pytest.mark.slow]  # the mock promises nothing to a learner


@dataclass
class Learner:
    """Somebody with a key, an account and an ssh."""

    account: Account
    key: Path
    known: Path

    def launch(self) -> str:
        """One instance more, with the learner's key."""
        return launch(self.account, KeyName="learner", InstanceInitiatedShutdownBehavior="terminate")

    def address(self, instance: str) -> str:
        """Where the account says that it is."""
        return str(describe_instance(self.account, instance)["PublicIpAddress"])

    def pin(self, instance: str) -> None:
        """Trust the host key that the console shows, under the instance's present address, and no other."""
        ec2 = self.account.client("ec2")
        until(
            lambda: "END SSH HOST KEY KEYS" in ec2.get_console_output(InstanceId=instance)["Output"],
            "the console shows the keys",
        )
        said = ec2.get_console_output(InstanceId=instance, Latest=True)["Output"]
        block = said.partition("-----BEGIN SSH HOST KEY KEYS-----")[2].partition("-----END")[0]
        kind, key = block.split()[:2]
        with self.known.open("a") as known:
            known.write(f"{self.address(instance)} {kind} {key}\n")

    def ssh(self, address: str, *command: str, user: str = "ubuntu") -> subprocess.CompletedProcess[str]:
        """Run a command there, with the system's own ssh."""
        options = [
            *("-F", "none", "-i", str(self.key), "-o", f"ProxyCommand={self.account.proxy_command}"),
            *("-o", f"UserKnownHostsFile={self.known}", "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"),
            *("-o", "BatchMode=yes", "-o", "ConnectTimeout=20"),
        ]
        words = [need("ssh"), *options, f"{user}@{address}", *command]
        return subprocess.run(words, capture_output=True, text=True, timeout=STUCK_S, check=False, stdin=subprocess.DEVNULL)


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[Learner]:
    folder = tmp_path / "the learner's things"  # a blank and a quote for the proxy command; ssh's own options cannot take them
    key = make_key(tmp_path / "id_ed25519")
    with mock_account(folder / "account", behind="computers") as account:
        public = key.with_suffix(".pub").read_bytes()
        account.client("ec2").import_key_pair(KeyName="learner", PublicKeyMaterial=public)
        yield Learner(account, key, tmp_path / "known_hosts")
    uid = (folder / "account" / "uid").read_text()
    assert processes.list_carriers(processes.marker(processes.STACK, uid)) == []
    assert not any((folder / "account" / "nodes").iterdir())


def test_every_instance_is_a_machine_of_its_own(learner: Learner) -> None:
    first, second = learner.launch(), learner.launch()
    for instance in (first, second):
        learner.pin(instance)
        said = learner.ssh(learner.address(instance), "echo", "$USER", "$GPUCOURSE_NODE")
        assert said.stdout.split() == ["ubuntu", f"node{int(instance[-6:], 16)}"], said.stderr
    assert learner.ssh(learner.address(first), "true", user="root").returncode == 255
    assert learner.ssh("54.214.99.99", "true").returncode == 255
    homes = [learner.account.computer(instance)["home"] for instance in (first, second)]
    assert len(set(homes)) == 2
    learner.known.write_text(learner.known.read_text().replace(learner.address(first), "192.0.2.1"))
    assert "Host key verification failed" in learner.ssh(learner.address(first), "true").stderr


def test_a_machine_goes_with_its_instance(learner: Learner) -> None:
    first, other = learner.launch(), learner.launch()
    for instance in (first, other):
        learner.pin(instance)
    address, home = learner.address(first), Path(learner.account.computer(first)["home"])
    assert learner.ssh(address, "touch", "kept").returncode == 0

    learner.account.client("ec2").stop_instances(InstanceIds=[first])
    assert learner.ssh(address, "true").returncode == 255
    learner.account.client("ec2").start_instances(InstanceIds=[first])
    assert learner.address(first) != address
    learner.pin(first)
    assert learner.ssh(learner.address(first), "ls").stdout == "kept\n"

    address = learner.address(first)
    learner.account.client("ec2").terminate_instances(InstanceIds=[first])
    assert learner.ssh(address, "true").returncode == 255
    until(lambda: not home.exists(), "its files are gone")
    address = learner.address(other)
    learner.account.shut_down(other)
    assert learner.ssh(address, "true").returncode == 255
    until(lambda: learner.account.computers() == {}, "no machine is left")
