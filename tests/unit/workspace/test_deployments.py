"""Records of labs: each target has its own class, and records of earlier versions are still read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpucourse.errors import MissingError
from gpucourse.model.deployment import AwsDeployment, Deployment, HostsDeployment, LocalDeployment, Receipt, SlurmDeployment
from gpucourse.workspace import deployments
from gpucourse.workspace.files import write_record
from gpucourse.workspace.paths import WorkspacePaths

NOW = "2026-01-31T14:25:01+00:00"
NODE = {
    "name": "node0", "role": "head", "address": "127.0.0.1", "port": 2201, "private_address": "127.0.0.1", "user": "me",
    "gpus": 0, "instance_type": "simulated", "python": "python3", "mode": "local", "host_key": "", "proxy": "", "key": "",
}  # fmt: skip
CLOUD = {
    "account": "123456789012", "region": "us-east-2", "zone": "us-east-2a", "instance_type": "g4dn.2xlarge", "gpu": "t4",
    "market": "spot", "owner": "ada", "ssh_cidr": "203.0.113.7/32", "ttl_hours": 4.0, "expires": NOW,
    "placement_group": False, "usd_per_hour": "0.75", "priced": "", "backstop": "", "stopped": True, "tried": [],
}  # fmt: skip


def store_record(paths: WorkspacePaths, target: str, *, variables: object, cloud: object = None) -> str:
    """Return a record as version 0.4 wrote it: one shape for all targets."""
    stack = f"03-{target}"
    record = {
        "version": 1, "stack": stack, "uid": "u-1", "module": "3", "title": "Parallel computing", "target": target,
        "template": "simulated", "phase": "ready", "created": NOW, "updated": NOW, "nodes_wanted": 1, "variables": variables,
        "inventory": {"stack": stack, "nodes": [NODE | {"mode": target}]}, "terraform": "Terraform 1.11.4", "shared": "",
        "lacks": "", "cloud": cloud, "error": None,
    }  # fmt: skip
    paths.deployment(stack).parent.mkdir(parents=True, exist_ok=True)
    paths.deployment(stack).write_text(json.dumps(record), encoding="utf-8")
    return stack


@pytest.fixture
def paths(tmp_path: Path) -> WorkspacePaths:
    return WorkspacePaths(tmp_path)


def test_load_refuses_a_lab_on_aws_without_an_account(paths: WorkspacePaths) -> None:
    with pytest.raises(MissingError, match="damaged"):
        deployments.load(paths, store_record(paths, "aws", variables={}))


@pytest.mark.parametrize(
    ("target", "kind", "variables", "properties"),
    [
        ("local", LocalDeployment, {"link": "1gbit"}, (True, "local", "", False)),
        ("aws", AwsDeployment, {}, (False, "aws", " --target aws", True)),
        ("hosts", HostsDeployment, {"hosts": ["a"]}, (False, "hosts", " --target hosts", False)),
        ("slurm", SlurmDeployment, {}, (False, "slurm", " --target slurm", False)),
    ],
)
def test_save_writes_what_load_reads(
    paths: WorkspacePaths, target: str, kind: type[Deployment], variables: object, properties: tuple[bool, str, str, bool]
) -> None:
    stack = store_record(paths, target, variables=variables, cloud=CLOUD if target == "aws" else None)
    lab = deployments.load(paths, stack)
    assert isinstance(lab, kind)
    assert (lab.is_simulated, lab.mode, lab.flag, lab.costs) == properties
    deployments.save(paths, lab)
    assert deployments.load(paths, stack) == lab
    if target != "aws":  # whoever reads the JSON of all labs finds the key in each
        assert json.loads(paths.deployment(stack).read_text())["cloud"] is None


def test_load_as_refuses_a_lab_of_another_target(paths: WorkspacePaths) -> None:
    stack = store_record(paths, "hosts", variables={})
    with pytest.raises(MissingError, match="it is the record of a lab on hosts"):
        deployments.load_as(paths, stack, LocalDeployment)


@pytest.mark.parametrize("name", ["../aws", "\x1b[31m", ""])
def test_load_refuses_a_target_whose_name_cannot_be_shown(paths: WorkspacePaths, name: str) -> None:
    stack = store_record(paths, "local", variables={})
    file = paths.deployment(stack)
    for key, value in (("target", name), ("mode", name)):
        text = file.read_text()
        file.write_text(text.replace(f'"{key}": "local"', f'"{key}": {json.dumps(value)}'), encoding="utf-8")
        with pytest.raises(MissingError, match="damaged"):
            deployments.load(paths, stack)
        file.write_text(text, encoding="utf-8")


def test_every_leaves_out_the_record_that_readable_names(paths: WorkspacePaths) -> None:
    for target in ("local", "hosts"):
        store_record(paths, target, variables={})
    paths.deployment("04-aws-t4").write_text("{")
    records, errors = deployments.readable(paths)
    assert ([record.stack for record in records], list(errors)) == (["03-hosts", "03-local"], ["04-aws-t4"])
    assert {record.stack for record in deployments.list_of_module(paths, "3")} == {"03-hosts", "03-local"}
    for read in (deployments.every, lambda paths: deployments.list_of_module(paths, "4")):
        with pytest.raises(MissingError, match="04-aws-t4"):
            read(paths)


def test_list_receipts_returns_the_oldest_first_and_names_a_damaged_one(paths: WorkspacePaths) -> None:
    for stamp, stack in (("20260102-000000", "03-local"), ("20260101-000000", "04-local")):
        receipt = Receipt(stack=stack, uid="u", module="3", mode="local", created="", destroyed=NOW)
        write_record(paths.receipt(stamp, stack), receipt)
    paths.receipt("20260103-000000", "05-local").write_text("{")
    receipts, (error,) = deployments.list_receipts(paths)
    assert [receipt.stack for receipt in receipts] == ["04-local", "03-local"]
    assert "20260103-000000" in error.what
