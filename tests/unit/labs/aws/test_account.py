from __future__ import annotations

import pytest

from gpucourse.aws.session import AwsIdentity
from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.aws.account import check_identity, find_lab
from gpucourse.workspace import deployments
from tests.unit.labs.aws.fakes import deployment_of


def test_on_aws_asks_which_of_several_labs_is_meant(context: Context) -> None:
    for gpu in ("t4", "l4"):
        deployments.save(context.paths, deployment_of(gpu=gpu))
    with pytest.raises(UsageError, match="module 3 has several labs on AWS"):
        find_lab(context, "3", verb="stop")
    assert find_lab(context, "3", gpu="l4", verb="stop").stack == "03-aws-l4"
    with pytest.raises(MissingError, match="module 3 has no lab on AWS with the GPU a10g"):
        find_lab(context, "3", gpu="a10g", verb="stop")


def test_check_identity_refuses_another_account() -> None:
    lab = deployment_of(account="123456789012")
    check_identity(AwsIdentity(account="123456789012", arn="arn"), lab)
    with pytest.raises(MissingError, match="03-aws-t4 is in the AWS account 123456789012"):
        check_identity(AwsIdentity(account="210987654321", arn="arn"), lab)
