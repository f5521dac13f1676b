"""Providers: linked from a mirror only once, and refused if they were replaced."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpucourse.errors import TerraformFailed
from gpucourse.model.event import Stage
from gpucourse.provision.stack import TerraformStack
from tests.system.provisioning import Lab

pytestmark = pytest.mark.system

NEEDS_AWS = (
    'terraform {\n  required_providers {\n    aws = { source = "hashicorp/aws" }\n  }\n}\nresource "terraform_data" "x" {}\n'
)
NEEDS_TINY = NEEDS_AWS.replace("hashicorp/aws", "example.com/acme/tiny").replace("aws", "tiny")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def stack(lab: Lab, text: str, **options: Any) -> TerraformStack:
    template = lab.root / "template"
    template.mkdir(exist_ok=True)
    (template / "main.tf").write_text(text, encoding="utf-8")
    environ = {**os.environ, "XDG_CACHE_HOME": str(lab.root / "cache")}
    new_stack = lab.stack(template=template, **{"environ": environ, **options})
    new_stack.variables = {}
    return new_stack


def stages(lab: Lab) -> int:
    return sum(isinstance(event, Stage) and event.seconds is None for event in lab.events)


@pytest.fixture
def mirror(lab: Lab) -> Path:
    """Return a folder with one small provider, which is never started because no resource of the stack uses it."""
    answer = subprocess.run([*lab.binary.argv, "version", "-json"], capture_output=True, check=True).stdout
    platform = re.findall(r'"platform": "(\w+)"', answer.decode())[0]
    program = lab.root / "mirror" / "example.com" / "acme" / "tiny" / "1.2.3" / platform / "terraform-provider-tiny_v1.2.3"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    return lab.root / "mirror"


def test_init_links_to_a_mirror_once(lab: Lab, mirror: Path) -> None:
    environ = {**os.environ, "XDG_CACHE_HOME": str(lab.root / "cache"), "TF_PLUGIN_MIRROR": str(mirror)}
    first = stack(lab, NEEDS_TINY, environ=environ)
    first.prepare()
    assert first.init(lab.watch)
    assert not first.init(lab.watch)
    assert stages(lab) == 1
    plugin = next((first.paths.terraform / ".terraform" / "providers").glob("*/*/*/*/*"))
    assert plugin.is_symlink(), "a mirror is linked to, not copied"
    plugin.unlink()
    first.init(lab.watch)
    assert plugin.exists()
    lock = (first.paths.terraform / ".terraform.lock.hcl").read_text(encoding="utf-8")
    assert 'version = "1.2.3"' in lock


def test_plan_refuses_a_provider_that_was_replaced(lab: Lab, mirror: Path) -> None:
    """The checksums stay in the lock file after `init`, so Terraform itself compares at every command."""
    new_stack = stack(lab, NEEDS_TINY, environ=os.environ | {"TF_PLUGIN_MIRROR": str(mirror)})
    new_stack.prepare()
    assert new_stack.init()
    lock = new_stack.paths.terraform / ".terraform.lock.hcl"
    assert "h1:" in lock.read_text(encoding="utf-8")
    program = next(mirror.rglob("terraform-provider-tiny*"))
    program.write_text("#!/bin/sh\nexit 2\n", encoding="utf-8")
    with pytest.raises(TerraformFailed, match=r"(?s)example\.com/acme/tiny.*checksum"):
        new_stack.plan()
