"""Reports of failures: the error in the table's words and of its own class, the record, and what exists and costs money."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.aws import failures
from gpucourse.errors import (
    CloudError,
    CredentialsError,
    ExitCode,
    GpucourseError,
    InfrastructureError,
    Interrupted,
    PermissionRefused,
    TerraformFailed,
)
from gpucourse.labs.aws import failure_report
from gpucourse.model.deployment import PlacementAttempt
from gpucourse.workspace import deployments
from tests.unit.labs.aws.fakes import context_in, deployment_of

WITHOUT_CREDENTIALS = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nowhere",
    "AWS_SHARED_CREDENTIALS_FILE": "/no",
}
TYPED = "gpucourse deploy 3 --target aws --spot --ttl 1h"
LOG = Path("/somewhere/terraform-apply.log")


@pytest.mark.parametrize(
    ("code", "kind", "exit_code"),
    [
        ("UnauthorizedOperation", PermissionRefused, ExitCode.MISSING),
        ("RequestExpired", CredentialsError, ExitCode.MISSING),
        ("VcpuLimitExceeded", CloudError, ExitCode.INFRASTRUCTURE),
    ],
)
def test_make_error_keeps_class_remedy_and_log(code: str, kind: type[GpucourseError], exit_code: ExitCode) -> None:
    failure = failures.classify(code, "You are not authorized to perform: ec2:RunInstances" if "Unauth" in code else "no")
    error = failure_report.make_error(failure, [], TerraformFailed("failed", log=LOG))
    assert type(error) is kind
    assert (error.exit_code, error.hint, error.log) == (exit_code, failure.remedy, LOG)
    assert f"[{code}" in error.what


def test_make_error_names_every_place_that_was_tried() -> None:
    failure = failures.classify("InsufficientInstanceCapacity", "no room")
    attempts = [
        PlacementAttempt(zone=f"us-east-2{zone}", instance_type="g4dn.xlarge", code=failure.code, why="", at="")
        for zone in "ab"
    ]
    error = failure_report.make_error(failure, attempts, TerraformFailed("failed"))
    assert "Tried 2 times: g4dn.xlarge in us-east-2a: InsufficientInstanceCapacity; g4dn.xlarge in us-east-2b" in error.what


def test_describe_existing_and_record_outcome_keep_the_phase_of_the_failure(tmp_path: Path) -> None:
    context, _events = context_in(tmp_path)
    context = replace(context, environ=WITHOUT_CREDENTIALS)
    deployment = deployment_of()
    existing = failure_report.describe_existing(context, deployment)
    assert "cannot be looked up now" in existing, "an account that does not answer is not called empty"

    def phase() -> str:
        stored = deployments.load(context.paths, deployment.stack)
        assert stored is not None
        return stored.phase

    with failure_report.record_outcome(context, deployment, TYPED):
        assert phase() == "creating", "before anything is made"
    assert phase() == "ready"

    with pytest.raises(InfrastructureError) as first_error, failure_report.record_outcome(context, deployment, TYPED):
        raise InfrastructureError("the set-up failed", hint="look at the log")
    assert first_error.value.what == f"the set-up failed\n{existing}"
    assert first_error.value.hint == "look at the log\ntake it down: gpucourse destroy 3 --gpu t4"
    assert phase() == "failed"

    with (
        pytest.raises(Interrupted, match=r"was interrupted\. Its resources") as error,
        failure_report.record_outcome(context, deployment, TYPED),
    ):
        raise KeyboardInterrupt
    assert f"{TYPED} continues; gpucourse destroy 3 --gpu t4 takes it down" in error.value.hint, "nothing was built"
    state = context.paths.stack(deployment.stack).state
    state.parent.mkdir(parents=True)
    state.write_text('{"resources": [{"mode": "managed", "type": "aws_vpc", "name": "this", "instances": [{}]}]}')
    with pytest.raises(Interrupted) as error, failure_report.record_outcome(context, deployment, TYPED):
        raise KeyboardInterrupt
    assert "gpucourse deploy 3 --target aws --gpu t4 continues" in error.value.hint, "what exists refuses another --ttl"
    assert phase() == "failed"
