from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gpucourse.aws.preflight import CANDIDATES, resolve
from gpucourse.errors import MissingError
from tests.unit.aws.cloud import ScriptedAccount

ROOT = Path(__file__).resolve().parents[3]
FIRST, SECOND = CANDIDATES["pytorch"][:2]


def account(parameters: dict[str, str]) -> ScriptedAccount:
    def images(params: dict[str, Any]) -> dict[str, Any]:
        disks = [
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 105}},
            {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
        ]
        return {"Images": [{"ImageId": params["ImageIds"][0], "RootDeviceName": "/dev/sda1", "BlockDeviceMappings": disks}]}

    entries = [{"Name": name, "Value": value} for name, value in parameters.items()]
    return ScriptedAccount({("ssm", "get_parameters"): {"Parameters": entries}, ("ec2", "describe_images"): images})


def test_resolve_returns_the_best_available_image() -> None:
    image = resolve(account({SECOND: "ami-2", FIRST: "ami-1"}), "pytorch")
    assert (image.id, image.parameter, image.root_gib) == ("ami-1", FIRST, 105)
    assert resolve(account({SECOND: "ami-2"}), "pytorch").id == "ami-2"


def test_resolve_fails_when_no_parameter_names_an_image() -> None:
    with pytest.raises(MissingError, match="us-east-2 has none"):
        resolve(account({}), "pytorch")
    scripted = account({FIRST: "ami-1"})
    scripted.answers["ec2", "describe_images"] = {"Images": []}
    with pytest.raises(MissingError, match="ami-1"):
        resolve(scripted, "pytorch")


def test_candidates_are_those_of_terraform() -> None:
    text = (ROOT / "terraform" / "modules" / "node" / "image.tf").read_text(encoding="utf-8")
    for kind, names in CANDIDATES.items():
        block = re.search(rf"\b{kind}\s*=\s*\[(.*?)\]", text, re.DOTALL)
        assert block is not None
        assert tuple(re.findall(r'"([^"]+)"', block.group(1))) == names
