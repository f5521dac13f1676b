from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.slurm.deploy import choose, describe_lacks, propose
from gpucourse.model.deployment import SlurmDeployment
from gpucourse.model.manifest import Module
from gpucourse.model.slurm_facts import PartitionFacts, ProbeFacts, SlurmFacts
from gpucourse.model.slurm_settings import SlurmSettings

TYPED = SlurmSettings(login="me@uni")
MODULE = cast("Module", SimpleNamespace(id="3"))
FACTS = SlurmFacts(
    partitions=[
        PartitionFacts(name="cpu", default=True, max_s=300, nodes=2, usable=2),
        PartitionFacts(
            name="gpu", nodes=2, usable=2, gpus=4, gpu_nodes=2, gpu_types={"a100": 1, "v100": 1}, accounts=("abc",), max_nodes=1
        ),
        PartitionFacts(name="big", nodes=9, usable=9, gpus=4, gpu_nodes=9, gpu_types={"a100": 9}, accounts=("own",)),
        PartitionFacts(name="down", open=False),
    ],
    enforced=("associations", "qos"),
    accounts=("dead", "abc"),
    qos=("normal",),
)


def make_lab(probe: ProbeFacts, **changes: Any) -> SlurmDeployment:
    return SlurmDeployment(
        stack="03-slurm", uid="u", module="3", template="slurm", phase="ready", created="", updated="", nodes_wanted=1,
        facts=FACTS, probe=probe, **changes,
    )  # fmt: skip


def test_choose_returns_the_partition_with_gpus_and_an_account_that_it_admits() -> None:
    settings, partition = choose(MODULE, SlurmSettings(), FACTS, nodes=1, typed=TYPED)
    assert (settings.account, partition.name) == ("abc", "gpu")
    settings, partition = choose(MODULE, SlurmSettings(partition="cpu"), FACTS, nodes=2, typed=TYPED)
    assert (settings.account, partition.name) == ("dead", "cpu")
    only_cpus = SlurmFacts(partitions=FACTS.partitions[:1])
    settings, partition = choose(MODULE, SlurmSettings(), only_cpus, nodes=1, typed=TYPED)
    assert (settings.account, partition.name) == ("", "cpu")


@pytest.mark.parametrize(
    ("settings", "nodes", "problem", "hint"),
    [
        ({"partition": "gpus"}, 1, "no partition 'gpus'; it has: cpu, gpu, big, down. Did you mean gpu", "--partition gpu"),
        ({"cpu_partition": "cpus"}, 1, "no partition 'cpus'", "--slurm cpu_partition=cpu"),
        ({"partition": "big"}, 1, "only for other accounts (own), not for dead or abc", "--partition gpu"),
        ({"partition": "gpu", "account": "dead"}, 1, "other accounts (abc), not for dead", "--account abc"),
        ({"partition": "down"}, 1, "the partition down is down", "--partition NAME"),
        ({"account": "own"}, 1, "no account 'own' on the cluster; yours: dead, abc", "--account abc"),
        ({"qos": "long"}, 1, "may not use the QoS 'long'; yours: normal", "--qos normal"),
        ({"gpu": "h100"}, 1, "a GPU of the type h100; the cluster has: a100, v100", "--gpu TYPE"),
        ({"partition": "gpu", "gpu": "h100"}, 1, "has no GPU of the type h100; it has: a100, v100", "--gpu a100"),
        ({}, 2, "2 nodes are needed, but a job in the partition gpu can have 1", "--nodes 1"),
    ],
)
def test_choose_says_what_the_cluster_lacks(settings: dict[str, Any], nodes: int, problem: str, hint: str) -> None:
    with pytest.raises(MissingError, match=re.escape(problem)) as caught:
        choose(MODULE, SlurmSettings(**settings), FACTS, nodes=nodes, typed=TYPED)
    assert caught.value.hint.startswith("gpucourse deploy 3 --target slurm --login me@uni ")
    assert hint in caught.value.hint


def test_choose_says_that_no_partition_is_open() -> None:
    facts = SlurmFacts(partitions=[FACTS.partitions[2]], accounts=("dead",), enforced=("associations",))
    with pytest.raises(MissingError, match=r"no partition of the cluster is open to you; it has: big. Your accounts: dead"):
        choose(MODULE, SlurmSettings(), facts, nodes=1, typed=TYPED)


@pytest.mark.parametrize(
    ("probe", "text"),
    [
        (ProbeFacts(), ""),
        (ProbeFacts(state="passed", gpu="A100", nodes=("a",)), ""),
        (ProbeFacts(state="passed", nodes=("a",)), "torch sees no GPU on a"),
        (
            ProbeFacts(state="pending", job="7", reason="Priority: other jobs are ahead of it", expected="2026-01-01T10:00:00"),
            "(job 7) is waiting in the queue (Priority: other jobs are ahead of it, expected to start at 2026-01-01T10:00:00",
        ),
    ],
)
def test_describe_lacks_says_what_the_probe_did_not_prove(probe: ProbeFacts, text: str) -> None:
    assert text in describe_lacks(make_lab(probe))
    assert bool(text) == bool(describe_lacks(make_lab(probe)))


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (DeployRequest(module="3", gpu=("a100", "v100")), "one type of GPU"),
        (DeployRequest(module="3", login="me uni"), "--login: must be a machine as ssh accepts it"),
        (DeployRequest(module="3", partition="a b"), "--partition: must be the name of a partition"),
        (DeployRequest(module="3", cluster="uni"), "no Slurm cluster 'uni'"),
        (DeployRequest(module="3", slurm=("job-name=x",)), "job-name belongs to the course"),
        (DeployRequest(module="3"), "no cluster is named, and this computer has no Slurm"),
    ],
)
def test_propose_refuses_a_request_before_it_connects(
    context: Context, monkeypatch: pytest.MonkeyPatch, request_: DeployRequest, problem: str
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_args, **_options: None)
    with pytest.raises(UsageError, match=problem), propose(context, request_):
        pass
