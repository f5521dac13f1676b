"""Which lab is meant: the typed values, then the settings, then the manifest. An existing lab keeps its properties."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpucourse.aws import quota
from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.aws.choice import HEAD, choices, need_of, needs
from gpucourse.labs.request import DeployRequest
from gpucourse.model.deployment import Deployment
from gpucourse.workspace import deployments
from tests.course import CATALOG
from tests.unit.labs.aws.fakes import deployment_of

ROOT = Path(__file__).parents[4]


def stands(context: Context, deployment: Deployment, phase: str = "ready") -> Deployment:
    """Record a lab."""
    deployments.save(context.paths, deployment, phase)  # type: ignore[arg-type]  # the test's own words
    return deployment


def test_choices_come_from_the_manifest_by_default(context: Context) -> None:
    [choice] = choices(context, DeployRequest(module="3"))
    assert (choice.stack, choice.gpu, choice.instance_type, choice.nodes) == ("03-aws-t4", "t4", "g4dn.2xlarge", 2)
    assert (choice.market, choice.region, choice.ttl_hours, choice.others) == ("on-demand", "us-east-2", 4.0, ())


def test_choices_take_flags_before_settings_before_the_manifest(context: Context) -> None:
    context.paths.settings.write_text("gpu: l4\nother_gpus: [a10g, l4]\nspot: true\nttl: 2h\nregion: us-west-2\n")
    [choice] = choices(context, DeployRequest(module="3"))
    assert (choice.instance_type, choice.others) == ("g6.2xlarge", ("g5.2xlarge",))
    assert (choice.market, choice.region, choice.ttl_hours) == ("spot", "us-west-2", 2.0)
    request = DeployRequest(module="3", gpu=("T4",), spot=False, ttl_s=1800.0, region="us-east-1", nodes=4)
    [choice] = choices(context, request)
    assert (choice.stack, choice.market, choice.region) == ("03-aws-t4", "on-demand", "us-east-1")
    assert (choice.ttl_hours, choice.nodes) == (0.5, 4)


def test_choices_keep_the_smaller_size_of_a_lab(context: Context) -> None:
    context.paths.settings.write_text("other_gpus: [l4]\n")
    [choice] = choices(context, DeployRequest(module="3", size="xlarge"))
    assert (choice.instance_type, choice.others) == ("g4dn.xlarge", ("g6.xlarge",))
    workers = choice.resize(4).need.machines[-1]
    assert (workers.instance_type, workers.count) == ("g4dn.xlarge", 4)
    stands(context, deployment_of(instance_type="g4dn.xlarge"))
    for size in (None, "xlarge"):
        [repeat_choice] = choices(context, DeployRequest(module="3", size=size))
        assert (repeat_choice.instance_type, repeat_choice.others) == ("g4dn.xlarge", ("g6.xlarge",))
    with pytest.raises(UsageError, match=r"g4dn\.2xlarge instead of g4dn\.xlarge would need a new lab"):
        choices(context, DeployRequest(module="3", size="2xlarge"))


def test_choices_mean_the_lab_that_exists_in_its_place(context: Context) -> None:
    standing = stands(context, deployment_of(gpu="l4", instance_type="g6.2xlarge", zone="us-east-2c", hours=6.0))
    [choice] = choices(context, DeployRequest(module="3"))
    assert choice.existing is not None
    assert (choice.stack, choice.gpu, choice.ttl_hours, choice.existing.uid) == ("03-aws-l4", "l4", 6.0, standing.uid)
    [t4_choice] = choices(context, DeployRequest(module="3", gpu=("t4",)))
    assert (t4_choice.stack, t4_choice.existing) == ("03-aws-t4", None)


def test_choices_do_not_replace_a_lab_that_got_another_gpu(context: Context) -> None:
    lab = deployment_of(gpu="l4", instance_type="g6.2xlarge")
    lab.stack = "03-aws-t4"
    stands(context, lab)
    with pytest.raises(UsageError, match="03-aws-t4 exists already, with L4, because T4 was sold out at the time") as caught:
        choices(context, DeployRequest(module="3", gpu=("t4",)))
    assert "gpucourse destroy 3 --gpu l4" in caught.value.hint
    [choice] = choices(context, DeployRequest(module="3", gpu=("l4",)))
    assert choice.existing is not None


def test_choices_of_several_gpus_are_labs_that_do_not_replace_each_other(context: Context) -> None:
    context.paths.settings.write_text("other_gpus: [l4, a10g, l40s]\n")
    stands(context, deployment_of(gpu="l40s", instance_type="g6e.2xlarge"))
    choice_list = choices(context, DeployRequest(module="3", gpu=("t4", "l4", "t4")))
    assert [choice.stack for choice in choice_list] == ["03-aws-t4", "03-aws-l4"]
    assert [choice.others for choice in choice_list] == [("g5.2xlarge",), ("g5.2xlarge",)]
    stands(context, deployment_of(region="us-west-2", zone="us-west-2a"))
    with pytest.raises(UsageError, match="differ in region or market"):
        choices(context, DeployRequest(module="3", gpu=("t4", "l4")))


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (DeployRequest(module="3", spot=True), "spot instead of on-demand would need a new lab"),
        (DeployRequest(module="3", region="us-west-2"), "us-west-2 instead of us-east-2"),
        (DeployRequest(module="3", ttl_s=7200.0), "--ttl is only for a new lab"),
    ],
)
def test_choices_refuse_to_make_another_lab_of_one_that_exists(wish: DeployRequest, words: str, context: Context) -> None:
    stands(context, deployment_of())
    with pytest.raises(UsageError, match=words):
        choices(context, wish)
    stands(context, deployment_of(stopped=True))
    with pytest.raises(MissingError, match="is stopped") as caught:
        choices(context, DeployRequest(module="3"))
    assert caught.value.hint == "gpucourse start 3"


def test_choices_ignore_a_failed_try_that_left_nothing(context: Context) -> None:
    attempt = stands(context, deployment_of(), "failed")
    [choice] = choices(context, DeployRequest(module="3", region="us-west-2", spot=True))
    assert choice.existing is None
    assert choice.former is not None
    assert (choice.former.uid, choice.region, choice.market) == (attempt.uid, "us-west-2", "spot")


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (DeployRequest(module="0"), "needs no cloud"),
        (DeployRequest(module="3", nodes=9), "accepts 1 to 8 nodes"),
        (DeployRequest(module="1", nodes=2), "accepts 1 node on AWS"),
        (DeployRequest(module="3", size="4xlarge"), "nodes of module 3 are 2xlarge or xlarge"),
        (DeployRequest(module="1", size="2xlarge"), "nodes of module 1 are xlarge"),
        (DeployRequest(module="3", gpu=("v100",)), "AWS retired"),
        (DeployRequest(module="3", gpu=("z1",)), "there is no GPU"),
        (DeployRequest(module="3", ttl_s=60.0), "15 minutes to 72 hours, not 60"),
        (DeployRequest(module="3", region="us-gov-west-1"), "AWS's partition aws-us-gov; the course"),
    ],
)
def test_choices_refuse_what_does_not_exist(wish: DeployRequest, words: str, context: Context) -> None:
    with pytest.raises(UsageError, match=words):
        choices(context, wish)


def test_need_of_two_nodes_fits_into_a_first_grant_of_8_vcpus() -> None:
    module = CATALOG.module("3")
    assert need_of(module).smaller == "g4dn.xlarge"
    small = need_of(module, size="xlarge")
    assert (small.smaller, [(machine.instance_type, machine.count) for machine in small.machines]) == ("", [("g4dn.xlarge", 2)])
    assert quota.needs([small], "on-demand") == {("L-DB2E81BA", "on-demand"): {"3": 8}}
    assert need_of(module, gpu="h100").smaller == "", "it is offered in one size"


def test_needs_price_what_the_stacks_make() -> None:
    """Compare the disks in the estimate with those that Terraform creates."""
    node = (ROOT / "terraform/modules/node/variables.tf").read_text(encoding="utf-8")
    root = re.search(r'variable "root_gb" \{[^}]*default\s*=\s*(\d+)', node)
    head = re.search(r"root_gb\s*=\s*(\d+)", (ROOT / "terraform/stacks/slurm-cluster/main.tf").read_text(encoding="utf-8"))
    assert root
    assert head
    assert int(head.group(1)) == HEAD.disk_gib
    for need in needs(CATALOG):
        assert {machine.disk_gib for machine in need.machines if machine != HEAD} == {int(root.group(1))}
    for module in CATALOG.modules:
        lab = module.lab.aws
        template = lab and (ROOT / "terraform/stacks" / lab.template / "main.tf").read_text(encoding="utf-8")
        assert not lab or bool(re.search(r"shared_storage += true", str(template))) == (lab.storage_gib > 0), (
            f"storage of module {module.id}"
        )
