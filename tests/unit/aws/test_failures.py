from __future__ import annotations

import pytest

from gpucourse.aws.failures import classify, from_text, sentence
from gpucourse.model.cloud import Failure

FREE = "The specified instance type is not eligible for Free Tier. For a list of Free Tier instance types, run ..."
VCPU = (
    "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that the "
    "specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment."
)
NO_ROOM = (
    "We currently do not have sufficient g4dn.2xlarge capacity in the Availability Zone you requested (us-east-2a). Our system "
    "will be working on provisioning additional capacity. You can currently get g4dn.2xlarge capacity by not specifying an "
    "Availability Zone in your request or choosing us-east-2b, us-east-2c."
)
NOT_HERE = (
    "Your requested instance type (g6.xlarge) is not supported in your requested Availability Zone (us-east-1e). Please retry "
    "your request by not specifying an Availability Zone or choosing us-east-1a, us-east-1b, us-east-1c, us-east-1d."
)
SNAPSHOT = "Volume of size 40GB is smaller than snapshot 'snap-0123', expect size>= 105GB"
NOT_ALLOWED = (
    "You are not authorized to perform this operation. User: arn:aws:iam::123456789012:user/ada is not authorized to perform: "
    "ec2:RunInstances on resource: arn:aws:ec2:us-east-2:123456789012:instance/* because no identity-based policy allows the "
    "ec2:RunInstances action. Encoded authorization failure message: c2VjcmV0IQ_-aGVsbG8"
)
NO_ROLE = "The execution role you provide must allow AWS EventBridge Scheduler to assume the role."
STORAGE = "User is not authorized to perform that action on the specified resource"

# For each kind of failure, and each form of its code: code, message, kind, whether another zone or type may help.
TABLE = [
    ("InvalidParameterCombination", FREE, "account", False),
    ("InvalidParameterCombination", "Network interfaces and an instance-level subnet ID ...", "parameter", False),
    ("VcpuLimitExceeded", VCPU, "quota", False),
    ("Client.VolumeLimitExceeded", "Volume limit exceeded", "quota", False),
    ("InsufficientInstanceCapacity", NO_ROOM, "capacity", True),
    ("Server.InsufficientInstanceCapacity", "", "capacity", True),
    ("UnsupportedOperation", "Modifying 'x' is not supported for spot instances.", "parameter", False),
    ("Unsupported", NOT_HERE, "zone", True),
    ("InvalidAMIID.NotFound", "", "image", False),
    ("UnauthorizedOperation", NOT_ALLOWED, "permission", False),
    ("AccessDeniedException", STORAGE, "permission", False),
    ("DependencyAccessDeniedException", "", "permission", False),
    ("AccessDeniedException", "User not enabled for cost explorer access", "account", False),
    ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "", "permission", False),
    ("AuthFailure", "AWS was not able to validate the provided access credentials", "credentials", False),
    ("RequestExpired", "", "credentials", False),
    ("NoCredentials", "", "credentials", False),
    ("RequestLimitExceeded", "Request limit exceeded.", "throttle", False),
    ("InvalidBlockDeviceMapping", SNAPSHOT, "parameter", False),
    ("InvalidKeyPair.Duplicate", "", "leftovers", False),
    ("DependencyViolation", "resource sg-1 has a dependent object", "in_use", False),
    ("InvalidInstanceID.NotFound", "", "gone", False),
    ("InvalidParameterValue", "", "parameter", False),
    ("ValidationException", NO_ROLE, "role", False),
    ("SomethingNobodyHasSeen", "", "unknown", False),
]
BY_TERRAFORM = (
    "creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: "
    "5b1c2d9e-1111-2222-3333-444455556666, api error {}: {}"
)


@pytest.mark.parametrize(
    ("code", "message", "kind", "elsewhere"), TABLE, ids=[f"{code}-{kind}" for code, _message, kind, _elsewhere in TABLE]
)
def test_classify_gives_a_code_its_kind_from_boto3_and_from_terraform(
    code: str, message: str, kind: str, elsewhere: bool
) -> None:
    failure = classify(code, message)
    assert (failure.kind, failure.can_retry_elsewhere) == (kind, elsewhere)
    assert failure.meaning
    assert failure.remedy
    assert code.split(".", 1)[-1] in sentence(failure) or code in sentence(failure)
    from_terraform = from_text(BY_TERRAFORM.format(code, message or "no more"))
    assert from_terraform is not None
    assert (from_terraform.kind, from_terraform.can_retry_elsewhere) == (kind, elsewhere)


def test_classify_suggests_zones_that_aws_names_without_the_one_that_failed() -> None:
    assert classify("InsufficientInstanceCapacity", NO_ROOM).suggested == ("us-east-2b", "us-east-2c")


def test_sentence_names_the_missing_permission_without_the_encoded_message() -> None:
    failure = classify("UnauthorizedOperation", NOT_ALLOWED)
    assert failure.action == "ec2:RunInstances"
    assert "c2VjcmV0IQ" not in sentence(failure)
    assert "ec2:RunInstances" in sentence(failure)


def refuse_mount_target() -> Failure:
    """Return what Terraform says when an account's first mount target needs a role that the caller may not create."""
    failure = from_text(
        "╷\n│ Error: creating EFS Mount Target (fs-0123): operation error EFS: CreateMountTarget, https response error\n"
        f"│ StatusCode: 403, RequestID: 937f7fea, api error AccessDeniedException: {STORAGE}\n│ \n╵"
    )
    assert failure is not None
    return failure


@pytest.mark.parametrize(
    ("failure", "service"),
    [
        (classify("DependencyAccessDeniedException", "Service-linked role creation access denied"), "servicequotas"),
        (refuse_mount_target(), "elasticfilesystem"),
        (classify("AuthFailure.ServiceLinkedRoleCreationNotPermitted"), "spot"),
    ],
    ids=["quota", "storage", "spot"],
)
def test_classify_names_the_command_for_a_role_of_aws_that_may_not_be_made(failure: Failure, service: str) -> None:
    assert (failure.kind, failure.action) == ("permission", "iam:CreateServiceLinkedRole")
    assert f"(iam:CreateServiceLinkedRole) [{failure.code}" in sentence(failure)
    assert f"aws iam create-service-linked-role --aws-service-name {service}.amazonaws.com" in failure.remedy


def test_from_text_takes_the_call_for_the_permission_that_a_refusal_does_not_name() -> None:
    failure = from_text(
        "operation error Service Quotas: ListServiceQuotas, x, api error AccessDeniedException: no. "
        f"operation error EFS: CreateFileSystem, x, api error AccessDeniedException: {STORAGE}"
    )
    assert failure is not None
    assert failure.action == "servicequotas:ListServiceQuotas"
    efs_failure = from_text(f"operation error EFS: CreateFileSystem, x, api error AccessDeniedException: {STORAGE}")
    assert efs_failure is not None
    assert (efs_failure.action, "--policy" in efs_failure.remedy) == ("elasticfilesystem:CreateFileSystem", True)


def test_classify_returns_a_remedy_that_says_what_to_open_to_type_or_to_change() -> None:
    assert "105 GiB" in classify("InvalidBlockDeviceMapping", SNAPSHOT).remedy
    assert "Paid plan" in classify("InvalidParameterCombination", FREE).remedy
    assert "--request-quota" in classify("VcpuLimitExceeded", VCPU).remedy


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "An error occurred (VcpuLimitExceeded) when calling the RunInstances operation: You have requested more vCPU",
            "VcpuLimitExceeded",
        ),
        (
            (
                "waiting for EC2 Instance (i-0123) create: unexpected state 'shutting-down', wanted 'running'. last error: "
                "Server.InsufficientInstanceCapacity: Insufficient capacity to satisfy your spot request"
            ),
            "InsufficientInstanceCapacity",
        ),
        (
            "Error launching source instance: Unsupported: Your requested instance type is not supported\n\tstatus code: 400",
            "Unsupported",
        ),
        ("No valid credential sources found. Please see https://registry.terraform.io/...", "NoCredentials"),
    ],
)
def test_from_text_finds_the_code_in_each_form(text: str, code: str) -> None:
    failure = from_text(text)
    assert failure is not None
    assert failure.code == code


@pytest.mark.parametrize("text", ["", "Error: Unsupported argument", "Error running command 'node.py up': exit status 1"])
def test_from_text_is_none_when_no_error_of_aws_is_named(text: str) -> None:
    assert from_text(text) is None


def test_from_text_ends_a_message_where_the_next_error_begins() -> None:
    failure = from_text("api error VcpuLimitExceeded: too much operation error EC2: CreateVpc, api error VpcLimitExceeded: x")
    assert failure is not None
    assert failure.message == "too much"
