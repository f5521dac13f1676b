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
def somebody() -> Iterator[Learner]:
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


def _processes_of_his() -> list[str]:
    """Processes under his number, or under one of those that are lent to him."""
    his = {NUMBER, *range(LENT, LENT + MANY)}
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid in his and ") Z" not in (process / "stat").read_text():
                pids.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return pids


def test_a_plain_user_has_a_cluster_runs_a_job_and_leaves_nothing(somebody: Learner) -> None:
    somebody.types("deploy", "2", "--nodes", "2")
    assert _processes_of_his() != []
    own = script(somebody.workspace.parent, "print('begun', flush=True)\n")
    ran = somebody.types(*OWN, own)
    assert "is COMPLETED on node" in ran.err
    assert somebody.types("ssh", "2", "--", "id", "-u").out == f"{NUMBER}\n"
    assert somebody.types("ssh", "2", "--", "srun", "-N2", "id", "-u").out == f"{NUMBER}\n" * 2
    somebody.types("destroy", "--all", "--yes")
    until(lambda: not _processes_of_his(), what="the end of the last process")
    assert str(somebody.workspace) not in Path("/proc/mounts").read_text(encoding="utf-8")
    nodes = somebody.workspace / ".gpucourse/stacks/02-local/nodes"
    assert not nodes.exists() or list(nodes.iterdir()) == []
