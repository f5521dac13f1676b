"""`--link` on a kernel that refuses namespaces: the error names the setting that forbids them and the command that allows them,
and nothing is built.
"""

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
        if os.geteuid():  # in that namespace, the owner of /tmp has no name
            learner.workspace.mkdir()
            learner.types("trust", str(learner.workspace))
        result = learner.types("deploy", "3", "--link", "1gbit", code=3)
        assert learner.documents("status")["stacks"] == []
    assert "does not let you create namespaces" in result.err
    assert "sudo sysctl -w user.max_net_namespaces=10000" in " ".join(result.err.split())
