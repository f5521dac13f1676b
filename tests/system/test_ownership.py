"""Another user's workspace or course runs nothing, whichever way a command reaches it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from gpucourse.remote.keys import ensure_client_key
from gpucourse.workspace.locate import open_workspace
from tests.system.cli import Learner

COMPLETION = {"_GPUCOURSE_COMPLETE": "complete_bash", "COMP_WORDS": "gpucourse deploy ", "COMP_CWORD": "2"}
NOW = "2026-01-31T14:25:01+00:00"
NODE = {
    "name": "node0", "role": "head", "address": "127.0.0.1", "port": 9, "private_address": "127.0.0.1", "user": "me", "gpus": 0,
    "instance_type": "", "python": "python3", "mode": "hosts",
}  # fmt: skip


@pytest.fixture
def learner(tmp_path: Path) -> Learner:
    """Return a learner whose own workspace is never created."""
    return Learner(tmp_path / "own")


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """Return the file that the trap of these tests creates when it runs."""
    return tmp_path / "canary"


@pytest.fixture
def trap(tmp_path: Path, canary: Path) -> Path:
    """Return a workspace that every user may write to, with a lab that is reached by a command."""
    paths = open_workspace(tmp_path / "trap").paths
    host_key = ensure_client_key(paths.client_key)
    node = NODE | {"host_key": host_key, "proxy": f"touch {shlex.quote(str(canary))}"}
    paths.deployments.mkdir()
    paths.deployment("03-hosts").write_text(
        json.dumps(
            {
                "stack": "03-hosts", "uid": "x", "module": "3", "target": "hosts", "template": "", "phase": "ready",
                "created": NOW, "updated": NOW, "nodes_wanted": 1, "inventory": {"stack": "03-hosts", "nodes": [node]},
            }
        )
    )  # fmt: skip
    (paths.root / "below").mkdir()
    paths.root.chmod(0o1777)
    return paths.root


@pytest.mark.parametrize("way", ["variable", "option", "parent"])
def test_status_runs_nothing_of_others_until_it_is_trusted(
    learner: Learner, trap: Path, canary: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trap / "below" if way == "parent" else trap.parent)
    learner.environ["GPUCOURSE_WORKSPACE"] = str(trap) if way == "variable" else ""
    words = ("--workspace", str(trap)) if way == "option" else ()
    result = learner.types("status", *words, code=3)
    assert f"every user of this computer may write to {trap}" in result.err
    assert f"gpucourse trust {trap}" in result.err
    assert not canary.exists()
    if way == "parent":
        learner.types("trust", str(trap))
        learner.types("status", *words)
        assert canary.exists()  # this is what a workspace may do once it is trusted


def test_shell_completes_nothing_from_others(learner: Learner, trap: Path) -> None:
    learner.environ.update(COMPLETION)
    assert "3" in learner.types(code=None).out.split()
    assert learner.types(code=None, GPUCOURSE_WORKSPACE=str(trap)).out.strip() == ""


def test_list_refuses_a_course_that_others_may_change_until_it_is_trusted(learner: Learner, tmp_path: Path) -> None:
    course = tmp_path / "course"
    for part in ("modules", "exercises"):
        (course / part).mkdir(parents=True)
    course.chmod(0o777)
    learner.environ["GPUCOURSE_COURSE"] = str(course)
    assert f"every user of this computer may write to {course}" in learner.types("list", code=3).err
    learner.types("trust", str(course))
    learner.types("list")
