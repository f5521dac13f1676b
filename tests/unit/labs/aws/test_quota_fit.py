"""What the quota allows at a time: side by side, one after the other, a few nodes less, or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpucourse.aws import quota
from gpucourse.aws.session import Account
from gpucourse.labs.aws import quota_fit
from gpucourse.labs.aws.choice import Choice
from gpucourse.labs.aws.quota_fit import Fit
from gpucourse.model.cloud import CloudInstance, LabNeed
from tests.unit.labs.aws.fakes import CLUSTER, ONE_NODE, choice_of, context_in, deployment_of, module_with

ACCOUNT = Account("us-east-2", {})
G, STANDARD = "L-DB2E81BA", "L-1216C47A"


Limits = dict[str, int | None]  # in vCPUs by code; None is one that AWS does not let us read


@pytest.fixture
def limits() -> Limits:
    return {G: 64, STANDARD: 32}


def fit(limits: Limits, wanted: list[Choice], *, chosen: bool = False, networks: int = 1) -> Fit:
    """What fits into these limits, in a region that holds so many networks of five."""

    known = {code: (limit, "") for code, limit in limits.items()}
    quotas = quota.Quotas(ACCOUNT, limits=known, used=({}, ""))
    return quota_fit.fit(quotas, wanted, chosen=chosen, networks=lambda _account: (networks, 5))


def test_fit_puts_gpus_side_by_side_as_long_as_the_quota_holds(tmp_path: Path, limits: Limits) -> None:
    context, _events = context_in(tmp_path)
    module = module_with(ONE_NODE, context)
    wanted = [choice_of(module, gpu=gpu) for gpu in ("t4", "l4", "a10g")]
    fitting = fit(limits, wanted)
    assert ([choice.gpu for choice in fitting.now], fitting.later) == (["t4", "l4", "a10g"], [])
    limits[G] = 8
    fitting = fit(limits, wanted)
    assert [choice.gpu for choice in fitting.now] == ["t4", "l4"]
    assert [choice.gpu for choice in fitting.later] == ["a10g"]
    limits[G] = None
    assert len(fit(limits, wanted).now) == 3, "what is not known is not refused"
    assert len(fit(limits, wanted, networks=4).now) == 1, "each lab needs a network of its own"
    limits[STANDARD] = 3
    clusters = [choice_of(module_with(CLUSTER, context), gpu=gpu) for gpu in ("t4", "l4")]
    assert [choice.gpu for choice in fit(limits, clusters).later] == ["l4"], "a head counts against a quota of its own"


def test_fit_takes_fewer_nodes_when_the_module_works_with_them(tmp_path: Path, limits: Limits) -> None:
    context, _events = context_in(tmp_path)
    cluster = choice_of(module_with(CLUSTER, context))
    limits[G] = 8
    fitting = fit(limits, [cluster])
    [choice] = fitting.now
    assert (choice.nodes, choice.need.machines[-1].count) == (2, 2)
    assert "2 nodes, not 3" in fitting.notes[0]
    typed = fit(limits, [cluster], chosen=True)
    assert [choice.nodes for choice in typed.now] == [3], "what somebody typed stays; the preflight says that it does not fit"
    assert (typed.fewer, fitting.fewer) == (2, 0)
    limits[G] = 4
    [little] = fit(limits, [cluster]).now
    assert little.nodes == 3


def measure(choice: Choice, *listed: CloudInstance) -> LabNeed:
    """What the lab takes beside these instances."""
    assert choice.standing is not None
    return quota_fit.measure_growth(ACCOUNT, choice.need, choice.standing, find=lambda *_args, **_more: list(listed))


def make_instances(kind: str, *states: str) -> list[CloudInstance]:
    return [
        CloudInstance(
            id=f"i-{index}", node=f"node{index}", instance_type=kind, region="us-east-2", zone="us-east-2a",
            market="on-demand", state=state, launched=datetime.now(UTC),
        )
        for index, state in enumerate(states)
    ]  # fmt: skip


def test_measure_growth_counts_only_what_a_lab_lacks(tmp_path: Path, limits: Limits) -> None:
    context, _events = context_in(tmp_path)
    limits[G] = 0
    module = context.catalog.module("3")
    standing = choice_of(module, standing=deployment_of())
    assert fit(limits, [standing]).now == [standing]
    two = make_instances("g4dn.2xlarge", "running", "pending")
    assert quota.needs([measure(standing, *two)], "on-demand") == {(G, "on-demand"): {"3": 0}}
    larger = measure(choice_of(module, nodes=5, standing=deployment_of()), *two)
    assert quota.needs([larger], "on-demand") == {(G, "on-demand"): {"3": 24}}
    ended = measure(standing, *make_instances("g4dn.2xlarge", "running", "terminated"))
    assert ended.machines[-1].count == 1
    head = make_instances("t3.medium", "running")
    smaller = deployment_of(instance_type="g4dn.xlarge")
    cluster = measure(choice_of(module_with(CLUSTER, context), standing=smaller), *head)
    assert [(machines.instance_type, machines.count) for machines in cluster.machines] == [("t3.medium", 0), ("g4dn.xlarge", 3)]
