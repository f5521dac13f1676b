"""Module 2 on AWS, whole: the first boot of head and nodes sets up a real Slurm behind the instances of a mock account."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpucourse.local import health
from gpucourse.local.machines.requirements import Lacking, require
from tests.mock_aws.asking import first_script
from tests.system import slurm
from tests.system.aws.learner import CloudLearner, cloud_learner
from tests.system.exercising import needs_torch
from tests.waiting import STUCK_S, until

pytestmark = [pytest.mark.system, pytest.mark.slow, needs_torch]

STACK = "02-aws-t4"
TWO_NODES = {"L-DB2E81BA": 8.0}  # vCPUs of GPU instances; a g4dn.xlarge has 4, and the module would take three


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    """A head and two nodes on AWS, up."""
    try:
        require(slurm=True)
    except Lacking as error:
        pytest.skip(f"{error}: {error.remedy}")
    with cloud_learner(tmp_path_factory.mktemp("lab"), quotas=TWO_NODES, behind="machines") as learner:
        for name, words, code in (("refused", ("--nodes", "3"), 3), ("deployed", (), 0)):
            typed = learner.types("deploy", "2", "--target", "aws", "--yes", *words, code=code, timeout=280)
            (learner.workspace / f"{name}.txt").write_text(typed.out + typed.err)
        yield learner
        learner.types("destroy", "--all", "--yes", "--discard", timeout=240)
        assert learner.list_resources() == []
        machines = learner.account.folder / "nodes"
        until(lambda: not list(machines.iterdir()), "the machines are off")
        assert str(machines) not in Path("/proc/mounts").read_text(encoding="utf-8")


def inside(lab: CloudLearner, node: str, command: str) -> str:
    """What a command says that root types on a node, past SSH."""
    [instance] = [resource.id for resource in lab.list_resources("instance") if resource.tags["Node"] == node]
    asked = {"name": lab.account.computer(instance)["name"], "argv": ["sh", "-c", command]}
    done = health.ask_host(lab.account.folder / "nodes", "run", asked, timeout_s=30.0)
    assert done["code"] == 0, done
    return str(done["output"])


def verdicts(lab: CloudLearner) -> dict[str, str]:
    return {check["id"]: check["verdict"] for check in json.loads((lab.run_folder() / "verdict.json").read_text())["checks"]}


def test_every_node_is_idle_with_its_gpu_and_as_many_as_the_quota_holds(lab: CloudLearner) -> None:
    assert "--nodes 2 fits into the quota as it is" in (lab.workspace / "refused.txt").read_text()
    said = (lab.workspace / "deployed.txt").read_text()
    assert "the quota holds 2 nodes, not 3: module 2 works with them as well" in said
    assert "Slurm has every node with its GPUs" in said
    record = lab.deployment(STACK)
    assert (record["phase"], record["nodes_wanted"], record["shared"]) == ("ready", 2, "/shared")
    nodes = [(node["name"], node["role"], node["gpus"], node["instance_type"]) for node in lab.inventory(STACK)]
    assert nodes == [
        ("node0", "head", 0, "t3.medium"),
        ("node1", "worker", 1, "g4dn.xlarge"),
        ("node2", "worker", 1, "g4dn.xlarge"),
    ]
    assert slurm.on_head(lab, "sinfo -h -N -o '%N|%T|%G'").splitlines() == ["node1|idle|gpu:1", "node2|idle|gpu:1"]
    assert sorted(slurm.on_head(lab, "srun -N2 --gres=gpu:1 hostname").split()) == ["node1", "node2"]


def test_a_second_plan_changes_nothing(lab: CloudLearner) -> None:
    [quote] = lab.types("deploy", "2", "--target", "aws", "--dry-run", "--json", timeout=240).document["quotes"]
    assert quote["changes"] == []


def test_the_key_of_munge_is_nowhere_but_on_the_nodes(lab: CloudLearner) -> None:
    keys = {inside(lab, node, "base64 -w0 /etc/munge/munge.key") for node in ("node0", "node1", "node2")}
    [key] = keys
    raw = base64.b64decode(key)
    assert len(raw) == 1024
    assert inside(lab, "node1", "ls -A /shared/.gpucourse/*/keys") == ""
    written = [raw[:48], raw[:48].hex().encode(), key.encode()[:48]]
    seen = _texts(lab)
    assert len(seen) > 20
    assert [name for name, text in seen.items() if any(form in text for form in written)] == []
    assert any(b"slurm_take_key" in text for name, text in seen.items() if name.startswith("user data"))


def _texts(lab: CloudLearner) -> dict[str, bytes]:
    """Everything where a secret would be read by others: the workspace with Terraform's state, plan and log; the calls that
    reached the account; what the instances were launched with, unpacked."""
    texts = {str(path): path.read_bytes() for path in lab.workspace.rglob("*") if path.is_file()}
    assert any(name.endswith("terraform.tfstate") for name in texts)
    texts["calls"] = (lab.account.folder / "calls.jsonl").read_bytes()
    for resource in lab.list_resources("instance"):
        answer: dict[str, Any] = lab.account.client("ec2").describe_instance_attribute(
            InstanceId=resource.id, Attribute="userData"
        )
        texts[f"user data of {resource.tags['Node']}"] = first_script(answer["UserData"]["Value"])
    return texts


def test_jobs_run_and_come_home(lab: CloudLearner) -> None:
    ran = lab.types("run", "2.1", "--set", "seconds=0.5", "--set", "size=256", timeout=200)
    assert "is COMPLETED on node" in ran.err
    assert (verdicts(lab)["all-submitted"], verdicts(lab)["own-gpu"]) == ("passed", "passed")
    record = lab.newest_run()
    assert (record["mode"], record["stack"], record["state"]) == ("aws", STACK, "succeeded")
    lab.types("run", "2.3", "--set", "elements=1000", timeout=200)
    words = verdicts(lab)
    assert [words.pop(name) for name in ("your-machines", "your-logs")] == ["not_measured"] * 2  # the part is open
    assert set(words.values()) == {"passed"}
    ranks = json.loads((lab.run_folder() / "metrics.json").read_text())["ranks"]
    assert sorted(row["machine"] for row in ranks) == ["node1", "node2"]


def test_a_drained_node_fails_the_rung_with_the_end_of_its_log(lab: CloudLearner) -> None:
    inside(lab, "node0", "scontrol update nodename=node2 state=drain reason='its fan is loud'")
    failed = lab.types("deploy", "2", "--target", "aws", "--yes", code=6, timeout=240)
    assert "node2: drained (its fan is loud)" in failed.err
    assert "node2, the end of /var/log/slurm/slurmd.log:" in failed.err
    assert "slurmd started on" in failed.err
    assert "gpucourse ssh 2 -- sinfo -R" in failed.err
    inside(lab, "node0", "scontrol update nodename=node2 state=resume")


@pytest.mark.slow
def test_a_node_and_a_head_that_are_built_anew_find_the_others(lab: CloudLearner) -> None:
    key = inside(lab, "node2", "sha256sum </etc/munge/munge.key")
    lost = [resource.id for resource in lab.list_resources("instance") if resource.tags["Node"] in {"node0", "node1"}]
    lab.account.client("ec2").terminate_instances(InstanceIds=lost)
    healed = lab.types("deploy", "2", "--target", "aws", "--yes", timeout=240)
    assert "2 rebuilt" in healed.out
    assert inside(lab, "node2", "sha256sum </etc/munge/munge.key") != key
    assert sorted(slurm.on_head(lab, "srun -N2 --gres=gpu:1 hostname").split()) == ["node1", "node2"]


def test_slurm_is_back_after_a_stop_and_a_start(lab: CloudLearner) -> None:
    daemons = "cat /run/munge/munged.pid /run/slurm*.pid; stat -c %Y /proc/1"
    before = [inside(lab, node, daemons) for node in ("node0", "node1", "node2")]
    lab.types("stop", "2", timeout=STUCK_S)
    started = lab.types("start", "2", timeout=240)
    assert "Slurm has every node with its GPUs" in started.err
    after = [inside(lab, node, daemons) for node in ("node0", "node1", "node2")]
    assert all(now != then for now, then in zip(after, before, strict=True))
    assert sorted(slurm.on_head(lab, "srun -N2 --gres=gpu:1 hostname").split()) == ["node1", "node2"]
    lab.types("extend", "2", "1h", "--yes")
    assert "healthy" in lab.types("status").out


@pytest.mark.slow
def test_a_smaller_lab_is_a_smaller_cluster(lab: CloudLearner) -> None:
    lab.types("deploy", "2", "--target", "aws", "--nodes", "1", "--yes", timeout=240)
    assert slurm.on_head(lab, "sinfo -h -N -o '%N|%T'").splitlines() == ["node1|idle"]
    refused = lab.types("run", "2.3", "--nodes", "2", code=2)
    assert "a larger lab: gpucourse deploy 2 --target aws --nodes 2" in " ".join(refused.err.split())
