from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpucourse.labs.results import DeployResult
from gpucourse.model.deployment import PlacementAttempt
from gpucourse.ui.render import render
from gpucourse.ui.views.deployed import deploy_result
from tests.unit.labs.aws.fakes import deployment_of


def test_deploy_result_on_aws_says_until_when_and_what_was_tried(tmp_path: Path) -> None:
    attempt = PlacementAttempt(
        zone="us-east-2a", instance_type="g4dn.xlarge", code="InsufficientInstanceCapacity", why="no room", at=""
    )
    deployment = deployment_of(usd_per_hour="0.5442", priced="AWS Price List, 2026-11-21", backstop="", tried=[attempt])
    result = DeployResult(deployment=deployment, changes=[("create", "x")], dry_run=False, seconds=42.0, healed=[])
    text = render(deploy_result(result, tmp_path / "ssh_config", "gpucourse run 3.1", whole=True), width=80)
    for words in ("lab of module 3 is ready", "$0.54 an hour (AWS Price List", "automatically in ", "Tried before", "no room"):
        assert words in text
    assert "gpucourse run 3.1" in text
    brief = render(deploy_result(result, tmp_path / "ssh_config", "gpucourse run 3.1"), width=80).splitlines()
    assert len(brief) <= 8
    assert brief[2].endswith(" ready in 42.0 s (1 change), g4dn.2xlarge in us-east-2a")
    assert brief[3].startswith("costs  $0.54 an hour; ends in ")
    assert brief[-2:] == ["When you are done: gpucourse destroy 3", "Next: gpucourse run 3.1"]
    unguarded = replace(result, deployment=deployment_of(backstop="refused: iam:CreateRole"))
    assert "refused: iam:CreateRole" in render(deploy_result(unguarded, tmp_path / "ssh_config"), width=80)
