"""A learner with a workspace and a mock AWS account. The machines behind its instances answer SSH."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpucourse.provision.providers import find_mirror
from gpucourse.workspace.files import read_json, to_json
from tests.forks import SHARED
from tests.mock_aws.account import Account, Resource, mock_account
from tests.system.cli import Learner
from tests.system.provisioning import any_terraform

TERRAFORM = Path(__file__).parents[3] / "terraform"
CIDR = "203.0.113.7/32"


@dataclass
class CloudLearner(Learner):
    """A learner whose commands reach the mock account, and nothing else."""

    account: Account = None  # type: ignore[assignment]  # a field after ones with defaults needs one; it is always given

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of any learner. The results of `terraform init` are shared if the tests have a folder for
        them.
        """
        shared = os.environ.get(SHARED)
        return {**super().environment, **({"XDG_CACHE_HOME": shared} if shared else {})}

    def describe_surroundings(self) -> str:
        """Return the account's last calls, which show what was refused and what was sent twice."""
        calls = (
            f"{call.at:.3f} {call.service}:{call.action} {call.status} {call.code} {call.invocation[:8]}"
            for call in self.account.calls()[-60:]
        )
        return "\nthe account's last calls:\n" + "\n".join(calls)

    def deployment(self, stack: str = "03-aws-t4") -> dict[str, Any]:
        """Return a stack's record from disk, or an empty one if there is none."""
        return dict(read_json(self.workspace / ".gpucourse" / "deployments" / f"{stack}.json") or {})

    def inventory(self, stack: str = "03-aws-t4") -> list[dict[str, Any]]:
        """Return the nodes of a stack, from its record."""
        return list((self.deployment(stack).get("inventory") or {}).get("nodes", []))

    def list_resources(self, *kinds: str) -> list[Resource]:
        """Return the account's resources that the course created."""
        return self.account.resources(*kinds)

    def sets(self, **settings: object) -> None:
        """Write settings into `gpucourse.yaml`. They replace settings of the same name."""
        file = self.workspace / "gpucourse.yaml"
        old_settings = read_json(file) if file.exists() else {}  # JSON is YAML
        file.write_bytes(to_json({**dict(old_settings or {}), **settings}))


@contextmanager
def cloud_learner(
    folder: Path,
) -> Iterator[CloudLearner]:
    """Yield a learner in `folder` with an empty account on the paid plan. Skip the test without Terraform or the AWS provider.

    At the end, check that no process of the workspace is left, and that the course's policy allowed every call.
    """
    any_terraform()
    if find_mirror(TERRAFORM / "modules" / "lab", os.environ) is None:
        pytest.skip("the AWS provider is not on this machine: name a folder that holds it in TF_PLUGIN_MIRROR")
    with mock_account(folder / "the account", computers=True) as account:
        learner = CloudLearner(folder / "work space", dict(account.environment), account)
        learner.takes_ports()
        learner.sets(ssh_proxy_command=account.proxy_command, node_python=sys.executable, ssh_cidr=CIDR)
        yield learner
        assert learner.processes() == []
        refusals = account.list_refused()
        assert refusals == [], f"the course's policy lacks this, or a call asks for too much: {refusals}"
