"""Where the kernel refuses namespaces, `--link` names what forbids and what allows them, and builds nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpucourse.local.machines.requirements import Lacking, require
from tests.forbidding import no_namespaces
from tests.system.cli import Learner

pytestmark = pytest.mark.system


def test_what_forbids_namespaces_is_named_with_its_remedy(tmp_path: Path) -> None:
    try:
        require(slurm=False, cable="1gbit")
    except Lacking as error:
        pytest.skip(f"{error}: {error.remedy}")
    with no_namespaces() as prefix:
        learner = Learner(tmp_path / "workspace", before=prefix)
        if os.geteuid():  # there the owner of /tmp has no name
            learner.workspace.mkdir()
            learner.types("trust", str(learner.workspace))
        result = learner.types("deploy", "3", "--link", "1gbit", code=3)
        assert learner.documents("status")["stacks"] == []
    assert "does not let you create namespaces" in result.err
    assert "sudo sysctl -w user.max_net_namespaces=10000" in " ".join(result.err.split())
