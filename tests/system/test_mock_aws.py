"""The mock AWS account answers as the real one does, where the project leans on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.mock_aws.account import Account, mock_account
from tests.mock_aws.asking import BASE, SPOT, describe_instance, expect_refusal, image, launch, wish
from tests.mock_aws.shared import GRAPHICS as G
from tests.mock_aws.shared import GRAPHICS_SPOT as G_SPOT

pytestmark = [pytest.mark.system, pytest.mark.slow]  # the mock promises nothing to a learner

UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"


def test_a_new_account_is_empty_in_every_region(account: Account) -> None:
    assert account.client("sts").get_caller_identity()["Account"] == "123456789012"
    for region in ("us-east-1", "eu-west-1"):
        assert account.client("ec2", region).describe_instances()["Reservations"] == []
    assert account.resources() == []


def test_images_are_found_by_parameter_in_their_own_region(account: Account) -> None:
    ssm, ec2 = account.client("ssm"), account.client("ec2")
    image_ids = {
        p["Name"]: p["Value"] for p in ssm.get_parameters(Names=[BASE, UBUNTU, "/aws/service/canonical/none"])["Parameters"]
    }
    assert image_ids.keys() == {BASE, UBUNTU}
    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path="/aws/service/deeplearning", Recursive=True)
    listed = [parameter["Name"] for page in pages for parameter in page["Parameters"]]
    assert BASE in listed
    assert len(listed) == len(set(listed)) > 5
    assert expect_refusal(ssm.get_parameter, Name="/aws/service/deeplearning/ami/x86_64/none") == ("ParameterNotFound", 400)
    image = ec2.describe_images(ImageIds=[image_ids[BASE]])["Images"][0]
    root = next(device for device in image["BlockDeviceMappings"] if device["DeviceName"] == image["RootDeviceName"])
    assert (root["Ebs"]["VolumeSize"], image["OwnerId"], image["State"]) == (75, "898082745236", "available")
    assert (
        expect_refusal(account.client("ec2", "us-east-1").describe_images, ImageIds=[image_ids[BASE]])[0]
        == "InvalidAMIID.NotFound"
    )
    named = [{"Name": "name", "Values": ["Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) *"]}]
    builds = ec2.describe_images(Owners=["amazon"], Filters=named)["Images"]
    assert max(builds, key=lambda build: str(build["CreationDate"]))["ImageId"] == image_ids[BASE]
    assert len(builds) == 2


def test_offerings_are_those_of_the_real_zones(account: Account) -> None:
    def zones(region: str, instance_type: str) -> list[str]:
        offerings = account.client("ec2", region).describe_instance_type_offerings(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [instance_type]}]
        )
        return sorted(offer["Location"][-1] for offer in offerings["InstanceTypeOfferings"])

    assert zones("us-east-2", "g6.xlarge") == ["a", "b", "c"]
    assert "e" not in zones("us-east-1", "g4dn.2xlarge")
    assert zones("eu-west-1", "g6.xlarge") == zones("us-east-1", "p3.2xlarge") == []


def test_placement_groups_live_and_are_kept_while_in_use(account: Account) -> None:
    ec2 = account.client("ec2")
    tags = [{"ResourceType": "placement-group", "Tags": [{"Key": "Project", "Value": "gpucourse"}]}]
    ec2.create_placement_group(GroupName="near", Strategy="cluster", TagSpecifications=tags)
    assert (
        expect_refusal(ec2.create_placement_group, GroupName="near", Strategy="cluster")[0] == "InvalidPlacementGroup.Duplicate"
    )
    for tag, names in (("gpucourse", ["near"]), ("other", [])):
        groups = ec2.describe_placement_groups(Filters=[{"Name": "tag:Project", "Values": [tag]}])["PlacementGroups"]
        assert [group["GroupName"] for group in groups] == names
    instance = launch(account, Placement={"GroupName": "near"})
    assert describe_instance(account, instance)["Placement"]["GroupName"] == "near"
    assert expect_refusal(ec2.delete_placement_group, GroupName="near") == ("InvalidPlacementGroup.InUse", 400)
    ec2.terminate_instances(InstanceIds=[instance])
    ec2.delete_placement_group(GroupName="near")
    assert expect_refusal(ec2.describe_placement_groups, GroupNames=["near"])[0] == "InvalidPlacementGroup.Unknown"
    unknown = wish(account, Placement={"GroupName": "near"})
    assert expect_refusal(ec2.run_instances, **unknown)[0] == "InvalidPlacementGroup.Unknown"


def test_quotas_are_read_and_asked_to_be_raised(account: Account) -> None:
    quotas = account.client("service-quotas")
    account.quota(G, 4)
    assert quotas.get_service_quota(ServiceCode="ec2", QuotaCode=G)["Quota"]["Value"] == 4
    account.quota(G, None, region="us-east-2")
    assert quotas.get_service_quota(ServiceCode="vpc", QuotaCode="L-F678F1CE")["Quota"]["Value"] == 5
    assert expect_refusal(quotas.get_service_quota, ServiceCode="ec2", QuotaCode=G) == ("NoSuchResourceException", 400)
    assert quotas.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode=G)["Quota"]["Value"] == 0
    assert G not in {quota["QuotaCode"] for quota in quotas.list_service_quotas(ServiceCode="ec2")["Quotas"]}
    elsewhere = account.client("service-quotas", "us-west-2")
    assert elsewhere.get_service_quota(ServiceCode="ec2", QuotaCode=G)["Quota"]["Value"] == 4
    ask = {"ServiceCode": "ec2", "QuotaCode": G, "DesiredValue": 16.0}
    assert quotas.request_service_quota_increase(**ask)["RequestedQuota"]["Status"] == "PENDING"
    assert expect_refusal(quotas.request_service_quota_increase, **ask)[0] == "ResourceAlreadyExistsException"
    assert (
        expect_refusal(elsewhere.request_service_quota_increase, **{**ask, "DesiredValue": 4.0})[0]
        == "IllegalArgumentException"
    )
    account.close_requests(G, granted=8)
    history = quotas.list_requested_service_quota_change_history_by_quota(ServiceCode="ec2", QuotaCode=G)["RequestedQuotas"]
    assert [request["Status"] for request in history] == ["CASE_CLOSED"]
    assert quotas.get_service_quota(ServiceCode="ec2", QuotaCode=G)["Quota"]["Value"] == 8


def test_prices_are_found_by_the_whole_set_of_filters_only(account: Account) -> None:
    pricing = account.client("pricing", "us-east-1")

    def ask(**filters: str) -> list[Any]:
        match = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in filters.items()]
        pages = pricing.get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=match)
        return [json.loads(product) for page in pages for product in page["PriceList"]]

    careless = {"instanceType": "g4dn.2xlarge", "regionCode": "us-east-2"}
    assert len(ask(**careless)) > 1
    (product,) = ask(
        **careless,
        operatingSystem="Linux",
        tenancy="Shared",
        preInstalledSw="NA",
        capacitystatus="Used",
        marketoption="OnDemand",
    )
    (term,) = product["terms"]["OnDemand"].values()
    (rate,) = term["priceDimensions"].values()
    assert float(rate["pricePerUnit"]["USD"]) == 0.752
    assert len(ask(operatingSystem="Linux")) > 100
    assert (
        expect_refusal(account.client("pricing", "us-east-2").get_products, ServiceCode="AmazonEC2")[0]
        == "InvalidParameterException"
    )


def test_spot_prices_differ_by_zone(account: Account) -> None:
    history = account.client("ec2").describe_spot_price_history(
        InstanceTypes=["g4dn.2xlarge", "g6.2xlarge"], ProductDescriptions=["Linux/UNIX"]
    )["SpotPriceHistory"]
    prices = {(entry["InstanceType"], entry["AvailabilityZone"]): float(entry["SpotPrice"]) for entry in history}
    assert len(prices) == len(history) == 6
    assert 0.2 < prices["g4dn.2xlarge", "us-east-2c"] < prices["g4dn.2xlarge", "us-east-2a"] < 0.752


def test_a_free_plan_launches_nothing_of_use(account: Account) -> None:
    assert account.client("freetier", "us-east-1").get_account_plan_state()["accountPlanType"] == "PAID"
    account.plan("FREE")
    assert account.client("freetier", "us-east-1").get_account_plan_state()["accountPlanType"] == "FREE"
    run = account.client("ec2").run_instances
    assert (
        expect_refusal(run, ImageId=image(account), InstanceType="t3.medium", MinCount=1, MaxCount=1)[0]
        == "InvalidParameterCombination"
    )


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"InstanceType": "g9.huge"}, "InvalidParameterValue"),
        ({"InstanceType": "p3.2xlarge"}, "InvalidParameterValue"),
        ({"InstanceType": "g4dn.xlarge", "ImageId": "ami-00000000000000000"}, "InvalidAMIID.NotFound"),
        ({"InstanceType": "g4dn.xlarge", "KeyName": "nobody"}, "InvalidKeyPair.NotFound"),
        (
            {"InstanceType": "g4dn.xlarge", "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 40}}]},
            "InvalidBlockDeviceMapping",
        ),
    ],
)
def test_a_launch_that_cannot_be_is_refused(account: Account, asked: dict[str, Any], code: str) -> None:
    assert expect_refusal(account.client("ec2").run_instances, **{**wish(account), **asked})[0] == code


def test_a_launch_in_a_zone_without_the_type_is_refused(account: Account) -> None:
    ec2 = account.client("ec2", "us-east-1")
    asked = wish(account, "g4dn.2xlarge", Placement={"AvailabilityZone": "us-east-1e"})
    assert expect_refusal(ec2.run_instances, **{**asked, "ImageId": image(account, "us-east-1")}) == ("Unsupported", 400)


def test_a_root_disk_takes_after_its_image(account: Account) -> None:
    (device,) = describe_instance(account, launch(account))["BlockDeviceMappings"]
    assert device["Ebs"]["DeleteOnTermination"]
    (volume,) = account.client("ec2").describe_volumes(VolumeIds=[device["Ebs"]["VolumeId"]])["Volumes"]
    assert (volume["Size"], volume["VolumeType"]) == (75, "gp3")


@pytest.mark.parametrize(("market", "code"), [({}, "VcpuLimitExceeded"), (SPOT, "MaxSpotInstanceCountExceeded")])
def test_limits_count_virtual_processors_by_market(account: Account, market: dict[str, Any], code: str) -> None:
    account.quota(G_SPOT if market else G, 8)
    options = {"InstanceMarketOptions": market} if market else {}
    launch(account, "g4dn.xlarge", **options)
    second = launch(account, "g4dn.xlarge", **options)
    assert expect_refusal(account.client("ec2").run_instances, **wish(account, **options)) == (code, 400)
    launch(account, "t3.medium", **options)  # another limit
    account.client("ec2").terminate_instances(InstanceIds=[second])
    launch(account, "g4dn.xlarge", **options)


def test_a_start_counts_too(account: Account) -> None:
    ec2 = account.client("ec2")
    stopped = launch(account)
    ec2.stop_instances(InstanceIds=[stopped])
    account.quota(G, 4)
    launch(account)
    assert expect_refusal(ec2.start_instances, InstanceIds=[stopped]) == ("VcpuLimitExceeded", 400)


def test_the_first_use_of_a_service_makes_its_role_if_it_may(tmp_path: Path) -> None:
    with mock_account(tmp_path / "another", quotas={G: 4}) as fresh:
        storage, quotas = fresh.client("efs"), fresh.client("service-quotas")
        subnet = fresh.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
        system = storage.create_file_system(CreationToken="one")["FileSystemId"]
        first_uses: dict[tuple[str, str, str, int], Callable[[], Any]] = {
            ("spot", "EC2Spot", "AuthFailure.ServiceLinkedRoleCreationNotPermitted", 403): partial(
                fresh.client("ec2").run_instances, **wish(fresh, InstanceMarketOptions=SPOT)
            ),
            ("elasticfilesystem", "AmazonElasticFileSystem", "AccessDeniedException", 403): partial(
                storage.create_mount_target, FileSystemId=system, SubnetId=subnet
            ),
            ("servicequotas", "ServiceQuotas", "DependencyAccessDeniedException", 400): partial(
                quotas.request_service_quota_increase, ServiceCode="ec2", QuotaCode=G, DesiredValue=16.0
            ),
        }
        role = fresh.client("iam").get_role
        for (service, name, code, status), use in first_uses.items():
            fresh.deny("iam:CreateServiceLinkedRole")
            assert expect_refusal(use) == (code, status)
            assert expect_refusal(role, RoleName=f"AWSServiceRoleFor{name}")[0] == "NoSuchEntity"
            fresh.calm()
            use()
            path = role(RoleName=f"AWSServiceRoleFor{name}")["Role"]["Path"]
            assert path == f"/aws-service-role/{service}.amazonaws.com/"


def test_a_trial_run_tells_of_permissions_only(account: Account) -> None:
    account.quota(G, 0)
    trial = wish(account, DryRun=True)
    assert expect_refusal(account.client("ec2").run_instances, **trial)[0] == "DryRunOperation"
    account.deny("ec2:RunInstances")
    assert expect_refusal(account.client("ec2").run_instances, **trial) == ("UnauthorizedOperation", 403)
