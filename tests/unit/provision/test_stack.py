"""A stack with a program in Terraform's place; with Terraform itself it is in tests/system/test_provision_stack.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gpucourse.provision.binary import TerraformBinary
from gpucourse.provision.stack import TerraformStack
from gpucourse.workspace.stack_paths import StackPaths


def test_discard_if_empty_keeps_what_exists(tmp_path: Path) -> None:
    (template := tmp_path / "template").mkdir()
    (template / "main.tf").touch()
    paths, binary = StackPaths(tmp_path / "03-local"), TerraformBinary(argv=("false",), version=(1, 11, 4), origin="terraform")
    stack = TerraformStack(paths=paths, template=template, variables={"node_count": 2}, binary=binary, environ={})
    stack.prepare()
    assert sorted(path.name for path in paths.terraform.iterdir()) == ["gpucourse.auto.tfvars.json", "main.tf"]
    paths.error_state.touch()  # a disk was full
    assert not stack.discard_if_empty()
    paths.error_state.unlink()
    assert stack.discard_if_empty()
    assert not paths.folder.exists()


TERRAFORM = """
import json, pathlib, sys
state = pathlib.Path("terraform.tfstate")
node = {"name": "node0", "role": "head", "address": "127.0.0.1", "port": 2222, "private_address": "127.0.0.1", "user": "me",
        "gpus": 0, "instance_type": "simulated", "python": "python3", "mode": "local"}
hook = {"resource": {"addr": "terraform_data.node"}, "action": "delete"}
instance = {"mode": "managed", "type": "terraform_data", "name": "node", "instances": [{}]}
match sys.argv[1]:
    case "plan":
        change = {"action": "create", "resource": {"addr": "terraform_data.node"}}
        print(json.dumps({"@message": "", "type": "planned_change", "change": change}))
    case "apply":
        state.write_text(json.dumps({"resources": [instance]}))
        print(json.dumps({"@message": "", "type": "outputs", "outputs": {"nodes": {"value": [node]}}}))
    case "destroy":
        state.write_text(json.dumps({"resources": []}))
        print(json.dumps({"@message": "", "type": "apply_start", "hook": hook}))
        print(json.dumps({"@message": "", "type": "apply_complete", "hook": hook}))
"""


def test_init_plan_up_and_down_ask_terraform_in_turn(tmp_path: Path) -> None:
    (template := tmp_path / "template").mkdir()
    (template / "main.tf").touch()
    (program := tmp_path / "terraform.py").write_text(TERRAFORM)
    binary = TerraformBinary(argv=(sys.executable, str(program)), version=(1, 11, 4), origin="terraform")
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    stack = TerraformStack(paths=StackPaths(tmp_path / "s"), template=template, variables={}, binary=binary, environ=environ)
    stack.prepare()
    assert (stack.init(), stack.init()) == (True, False), "Terraform has what these files need"
    assert stack.plan() == [("create", "terraform_data.node")]
    assert [node.name for node in stack.up().nodes] == ["node0"]
    assert stack.exists()
    assert stack.down() == ["terraform_data.node"]
    assert not stack.exists()
