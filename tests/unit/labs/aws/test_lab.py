"""What a lab's Terraform files are given."""

from __future__ import annotations

from pathlib import Path

from gpucourse.labs.aws.lab import variables
from tests.unit.labs.aws.fakes import context_in, deployment_of


def test_variables_are_flat_for_the_files_of_0_1(tmp_path: Path) -> None:
    """Such a lab still grows and heals after an upgrade: its own copy of the files stays with it."""
    context, _ = context_in(tmp_path)
    deployment = deployment_of("3")
    assert list(variables(context, deployment)) == ["lab"]
    old = context.paths.stack(deployment.stack).terraform / "variables.tf"
    old.parent.mkdir(parents=True)
    old.write_text('variable "zone" {}\n')
    given = variables(context, deployment)
    assert {"zone", "node_count", "tags"} <= given.keys()
    assert "lab" not in given
