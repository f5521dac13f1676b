"""What a stack's files say about providers, and where these come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import MissingError
from gpucourse.provision import providers
from tests.unit.provision.test_template import write


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ('resource "terraform_data" "x" {}\noutput "nodes" { value = [] }', False),
        ('resource "aws_instance" "x" {}', True),
        ('data "aws_ami" "x" {}', True),
        ('module "x" {\n  source = "./x"\n}', True),
        ('provider "aws" {}', True),
        ("terraform {\n  required_providers {\n  }\n}", True),
        ('terraform {\n  backend "s3" {}\n}', True),
        ('variable "provider" {\n}\n# module of the course', False),
    ],
)
def test_needs_init_when_there_is_anything_to_fetch(tmp_path: Path, text: str, needed: bool) -> None:
    assert providers.needs_init(write(tmp_path, main_tf=text)) is needed
    (tmp_path / "more.tf.json").write_text("{}", encoding="utf-8")
    assert providers.needs_init(tmp_path), "configuration in JSON is always initialised"


def test_find_mirror_takes_the_folder_that_has_the_provider(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", main_tf='required_providers { aws = { source = "hashicorp/aws" } }')
    usual, named = tmp_path / "usual", tmp_path / "named"
    named.mkdir()
    places = (str(tmp_path / "none")[1:], str(usual)[1:])
    assert providers.find_mirror(folder, {}, None, places) is None
    (usual / "registry.example" / "hashicorp" / "random").mkdir(parents=True)
    assert providers.find_mirror(folder, {}, None, places) is None
    (usual / "registry.example" / "hashicorp" / "aws").mkdir()
    assert providers.find_mirror(folder, {}, None, places) == usual
    assert providers.find_mirror(folder, {"TF_PLUGIN_MIRROR": str(named)}, None, places) == named
    assert providers.find_mirror(folder, {"TF_PLUGIN_MIRROR": "/none"}, named) == named
    with pytest.raises(MissingError, match="does not exist"):
        providers.find_mirror(folder, {"TF_PLUGIN_MIRROR": str(tmp_path / "none")}, None, places)
