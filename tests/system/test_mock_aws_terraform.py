"""The mock account under the real Terraform and its real AWS provider, which waits on the clock: all of it side by side."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpucourse.aws.failures import from_text
from gpucourse.model.cloud import FailureKind
from gpucourse.provision.providers import find_mirror
from tests.mock_aws.account import Account, mock_account
from tests.system.provisioning import STACKS, any_terraform

pytestmark = pytest.mark.system

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8wK4sDWFaDwFfTDN0qbhtHNfS0mFoJ1W5YnUuVJ6xk learner"
PATIENCE_S = 240
CODES: dict[str, FailureKind] = {  # each with what it means
    "InsufficientInstanceCapacity": "capacity",
    "InsufficientHostCapacity": "capacity",
    "UnfulfillableCapacity": "capacity",
    "VcpuLimitExceeded": "quota",
    "MaxSpotInstanceCountExceeded": "quota",
    "InstanceLimitExceeded": "quota",
    "Unsupported": "zone",
    "SpotMaxPriceTooLow": "price",
    "InsufficientFreeAddressesInSubnet": "zone",
    "InvalidAMIID.NotFound": "image",
    "OptInRequired": "account",
    "PendingVerification": "account",
    "Blocked": "account",
    "UnauthorizedOperation": "permission",
    "AuthFailure": "credentials",
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": "permission",
    "InvalidParameterCombination": "account",  # as a new account hears it: the type is not of the free plan
    "InvalidBlockDeviceMapping": "parameter",
    "RequestLimitExceeded": "throttle",
    "RequestExpired": "credentials",
}


@dataclass
class Said:
    """How one Terraform command went: its exit code, and its diagnostics by address."""

    code: int
    errors: dict[str, str] = field(default_factory=dict)
    text: str = ""


class Stack:
    """A copy of a stack of the tests, driven against an account."""

    def __init__(self, template: str, folder: Path, account: Account, **variables: Any) -> None:
        self.folder = folder / template
        shutil.copytree(STACKS / template, self.folder)
        (self.folder / "v.auto.tfvars.json").write_text(json.dumps(variables))
        self._argv = any_terraform().argv
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("TF_", "AWS_"))},
            **account.administrator,  # the stacks are the tests' own: the policy of the course is not made for them
            "TF_CLI_CONFIG_FILE": os.devnull,
            "CHECKPOINT_DISABLE": "1",
            "GOGC": "400",  # as gpucourse does: a fifth less of a processor for each start of the provider
        }
        mirror = find_mirror(self.folder, os.environ, None)
        if mirror is None:
            pytest.skip("no mirror of Terraform's AWS provider on this machine")
        done = self.run("init", "-no-color", f"-plugin-dir={mirror}")
        assert done.code == 0, done.text

    def run(self, command: str, *options: str) -> Said:
        """Run one command to its end."""
        done = subprocess.run(
            [*self._argv, command, "-input=false", *options],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        said = Said(done.returncode, text=done.stdout[-4000:] + done.stderr[-4000:])
        for line in done.stdout.splitlines():
            event = json.loads(line) if line.startswith("{") else {}
            diagnostic = event.get("diagnostic", {})
            if diagnostic.get("severity") == "error":
                said.errors[diagnostic.get("address", "")] = f"{diagnostic['summary']} {diagnostic.get('detail', '')}"
        return said

    def apply(self) -> Said:
        return self.run("apply", "-auto-approve", "-json", "-parallelism=40")

    def plan(self) -> Said:
        return self.run("plan", "-detailed-exitcode", "-no-color")

    def destroy(self) -> Said:
        return self.run("destroy", "-auto-approve", "-json")


def whole_life(folder: Path) -> None:
    """Apply, look again and find nothing to do, take down, and nothing is left. With spot requests: instances without them are
    built, planned again and taken down by tests/system/aws."""
    with mock_account(folder / "account") as account:
        stack = Stack("mock-aws", folder, account, public_key=KEY, spot=True)
        applied = stack.apply()
        assert applied.code == 0, applied.text
        kinds = [resource.kind for resource in account.resources()]
        assert kinds.count("instance") == kinds.count("volume") == 2
        assert kinds.count("spot request") == 2
        assert {"vpc", "subnet", "security group", "placement group", "key pair", "file system", "mount target"} <= set(kinds)
        untagged = [
            str(r) for r in account.resources() if r.tags.get("Project") != "gpucourse" and r.kind in {"instance", "volume"}
        ]
        assert untagged == []
        again = stack.plan()
        assert again.code == 0, again.text
        destroyed = stack.destroy()
        assert destroyed.code == 0, destroyed.text
        assert account.resources() == []


def count_refusals(account: Account, action: str) -> Counter[str]:
    """How many requests for an action each error refused. A provider that tries again makes another request; that its SDK
    sends one up to three times is the same request."""
    return Counter(code for code, _ in {(call.code, call.invocation) for call in account.calls(action) if call.code})


def every_error(folder: Path) -> None:
    """Each error reaches the diagnostics of the resource that met it, without being tried again; a refused destroy too."""
    with mock_account(folder / "account") as account:
        for code in CODES:
            account.fail("RunInstances", code, params={"UserData": base64.b64encode(f"# {code}".encode()).decode()})
        account.fail("CreateVpc", "VpcLimitExceeded")
        account.fail("ImportKeyPair", "InvalidKeyPair.Duplicate")
        account.deny("elasticfilesystem:CreateFileSystem")
        stack = Stack("mock-aws-errors", folder, account, codes=list(CODES), public_key=KEY)
        account.fail("GetCallerIdentity", "InvalidClientTokenId", times=1)
        stranger = stack.plan()
        assert (stranger.code, "api error InvalidClientTokenId: " in stranger.text) == (1, True), stranger.text
        assert count_refusals(account, "GetCallerIdentity") == {"InvalidClientTokenId": 1}
        applied = stack.apply()
        assert applied.code == 1
        assert count_refusals(account, "RunInstances") == dict.fromkeys(CODES, 1)
        for code, kind in CODES.items():
            said = applied.errors[f'aws_instance.node["{code}"]']
            assert f"api error {code}: " in said
            failure = from_text(said)
            assert failure is not None
            assert (failure.code, failure.kind) == (code, kind)
        assert "api error VpcLimitExceeded: " in applied.errors["aws_vpc.one_too_many"]
        assert "api error InvalidKeyPair.Duplicate: " in applied.errors["aws_key_pair.taken"]
        assert "AccessDeniedException: " in applied.errors["aws_efs_file_system.forbidden"]
        assert [resource.kind for resource in account.resources()] == ["subnet"]
        account.fail("DeleteSubnet", "DependencyViolation")
        refused = stack.destroy()
        assert refused.code == 1
        assert any("DependencyViolation" in error for error in refused.errors.values()), refused.text
        account.calm()
        assert stack.destroy().code == 0
        assert account.resources() == []


@pytest.mark.slow
def test_terraform_lives_in_the_mock_account(tmp_path: Path) -> None:
    any_terraform()
    if find_mirror(STACKS / "mock-aws", os.environ, None) is None:
        pytest.skip("no mirror of Terraform's AWS provider on this machine")
    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(whole_life, tmp_path / "spot"), pool.submit(every_error, tmp_path / "errors")]
        for job in work:
            job.result()
