"""What a stack's files say about providers, and where these come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import MissingError
from gpucourse.provision import providers
from tests.unit.provision.test_template import write


def test_find_mirror_takes_the_folder_that_has_the_provider(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", main_tf='required_providers { aws = { source = "hashicorp/aws" } }')
    usual, mirror = tmp_path / "usual", tmp_path / "named"
    mirror.mkdir()
    places = (str(tmp_path / "none")[1:], str(usual)[1:])
    assert providers.find_mirror(folder, {}, places) is None
    (usual / "registry.example" / "hashicorp" / "random").mkdir(parents=True)
    assert providers.find_mirror(folder, {}, places) is None
    (usual / "registry.example" / "hashicorp" / "aws").mkdir()
    assert providers.find_mirror(folder, {}, places) == usual
    assert providers.find_mirror(folder, {"TF_PLUGIN_MIRROR": str(mirror)}, places) == mirror
    with pytest.raises(MissingError, match="does not exist"):
        providers.find_mirror(folder, {"TF_PLUGIN_MIRROR": str(tmp_path / "none")}, places)
