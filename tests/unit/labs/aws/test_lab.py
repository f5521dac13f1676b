"""The values that a lab's Terraform files receive."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.labs.aws.lab import variables
from tests.unit.labs.aws.fakes import deployment_of


def test_variables_are_flat_for_the_files_of_0_1(context: Context) -> None:
    """Use the files of version 0.1. Such a lab can still be enlarged and repaired after an upgrade, because it keeps its own
    copy of them.
    """
    deployment = deployment_of("3")
    assert list(variables(context, deployment)) == ["lab"]
    old = context.paths.stack(deployment.stack).terraform / "variables.tf"
    old.parent.mkdir(parents=True)
    old.write_text('variable "zone" {}\n')
    flat_variables = variables(context, deployment)
    assert {"zone", "node_count", "tags"} <= flat_variables.keys()
    assert "lab" not in flat_variables
