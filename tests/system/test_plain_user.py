"""A Slurm cluster of one's own without being root: up, a job, down, and nothing is left."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cli import Learner
from tests.system.exercising import needs_torch
from tests.system.plain_user import LENT, MANY, NUMBER, words_of_a_plain_user
from tests.system.slurm import OWN, need_slurm, script
from tests.waiting import until

pytestmark = [pytest.mark.system, needs_torch]


@pytest.fixture
def user() -> Iterator[Learner]:
    """Somebody who is not root; whatever happens, his cluster and his folder are gone afterwards."""
    need_slurm()
    folder = Path(tempfile.mkdtemp(prefix="plain-user-"))  # pytest's own folders are closed to others
    try:
        before = words_of_a_plain_user(folder)
        learner = Learner(folder / "workspace", before=before)
        yield learner
        learner.types("destroy", "--all", "--yes", "--discard", "--quiet", code=None)
    finally:
        shutil.rmtree(folder)


def _list_processes() -> list[str]:
    """Return the processes under the number of the user, or under one of those that are lent to this user."""
    numbers = {NUMBER, *range(LENT, LENT + MANY)}
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid in numbers and ") Z" not in (process / "stat").read_text():
                commands.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return commands


@pytest.mark.slow  # every test of a cluster shows it when a plain user runs the tests
def test_cluster_of_a_plain_user_runs_a_job_and_leaves_nothing(user: Learner) -> None:
    user.types("deploy", "2", "--nodes", "2")
    assert _list_processes() != []
    own = script(user.workspace.parent, "print('begun', flush=True)\n")
    ran = user.types(*OWN, own)
    assert "is COMPLETED on node" in ran.err
    assert user.types("ssh", "2", "--", "id", "-u").out == f"{NUMBER}\n"
    assert user.types("ssh", "2", "--", "srun", "-N2", "id", "-u").out == f"{NUMBER}\n" * 2
    user.types("destroy", "--all", "--yes")
    until(lambda: not _list_processes(), what="the end of the last process")
    assert str(user.workspace) not in Path("/proc/mounts").read_text(encoding="utf-8")
    nodes = user.workspace / ".gpucourse/stacks/02-local/nodes"
    assert not nodes.exists() or list(nodes.iterdir()) == []
