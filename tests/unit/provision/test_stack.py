"""A stack with a program in place of Terraform. tests/system/test_provision_stack.py uses Terraform itself."""

from __future__ import annotations

from pathlib import Path

from gpucourse.provision.binary import TerraformBinary
from gpucourse.provision.stack import TerraformStack
from gpucourse.workspace.paths import StackPaths


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
