"""A workspace, and a lab with Slurm that is to be built in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.course.locate import find_course
from gpucourse.model.deployment import LocalDeployment
from gpucourse.units import now_utc
from gpucourse.workspace.locate import open_workspace


@pytest.fixture
def context(tmp_path: Path) -> Context:
    workspace, environ = open_workspace(tmp_path / "workspace"), {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    return Context(workspace=workspace, folders=find_course({}), environ=environ)


@pytest.fixture
def deployment() -> LocalDeployment:
    return LocalDeployment(
        stack="02-local", uid="uid", module="2", title="t", template="simulated", phase="creating",
        created=now_utc(), updated=now_utc(), nodes_wanted=3,
    )  # fmt: skip
