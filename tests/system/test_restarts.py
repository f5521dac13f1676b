"""A launcher that starts its ranks again, on real nodes: followed to the right end, and ended for good when it is to end.

It stands in for torchrun, which takes seconds to import: it starts each node's rank, and again when that fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.remote import execute
from gpucourse.remote.follow import FollowTimes
from gpucourse.remote.follow import follow as follow_nodes
from gpucourse.remote.follow_result import FollowResult
from tests.runs import Run, prepare
from tests.sshlab import SshLab, find_marked_processes, ssh_lab
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system

LAUNCHER = """
import os, subprocess, sys
count, argv = int(sys.argv[1]), sys.argv[2:]
for life in range(count + 1):
    rank = subprocess.Popen(argv, env={**os.environ, "TORCHELASTIC_RESTART_COUNT": str(life)}, start_new_session=True)
    if rank.wait() == 0:
        sys.exit(0)
    print("restarting", flush=True)
sys.exit(1)
"""
CRASH_ONCE = """
import os
life = os.environ["TORCHELASTIC_RESTART_COUNT"]
print("life", life, flush=True)
if life == "0":
    os._exit(9 if os.environ["RANK"] == "1" else 1)
"""
CRASH_ALWAYS = "import os, time\nprint('up', flush=True)\ntime.sleep(0.02)\nos._exit(9)"

Make = Callable[..., Run]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    with ssh_lab("simulated", tmp_path_factory.mktemp("restarts"), 2) as lab:
        yield lab


@pytest.fixture
def make(lab: SshLab, tmp_path: Path) -> Iterator[Make]:
    made: list[Run] = []

    def prepare_run(script: str, *, restarts: int, timeout_s: float = 60.0) -> Run:
        python = lab.nodes[0].python
        argv = [python, "-c", LAUNCHER, str(restarts), "{rank}", python, "-S", "script.py"]
        run = prepare(lab, tmp_path, script, argv=argv, timeout_s=timeout_s)
        run.plan = replace(run.plan, max_restarts=restarts)
        made.append(run)
        return run

    yield prepare_run
    for run in made:
        execute.cancel(run.fleet, run.plan.run_id, 0.2)
        for node in run.plan.nodes:
            assert not find_marked_processes(run.folder(node.name)), "processes of the run are left"
        run.fleet.close()


def follow(run: Run, *, restarts: int, grace_s: float = 0.3) -> FollowResult:
    job = run.job(max_restarts=restarts)
    return follow_nodes(run.fleet, job, run.events.append, run.stop, FollowTimes(grace_s=grace_s))


def test_follow_counts_the_restarts_of_a_run_that_ends_well(make: Make) -> None:
    run = make(CRASH_ONCE, restarts=2).launch()
    result = follow(run, restarts=2)
    assert [(ended.node, ended.code, ended.reason) for ended in result.node_exits] == [
        ("node0", 0, "exited"), ("node1", 0, "exited")
    ]  # fmt: skip
    assert (result.restarts, result.first_failure) == (1, None)
    assert run.log(1, "node1") == b"life 0\n--- restart 1 ---\nlife 1\n"
    assert run.collect_log("node1", 1) == run.log(1, "node1")
    again = follow(run, restarts=2)
    assert (again.restarts, again.first_failure, len(again.rank_exits)) == (1, None, 4), "also for a client that comes later"


def test_cancel_ends_a_launcher_that_restarts_for_ever(make: Make) -> None:
    run = make(CRASH_ALWAYS, restarts=100)
    run.launch()
    ended = threading.Thread(target=lambda: follow(run, restarts=100), daemon=True)
    ended.start()
    log = run.paths.rank_log("node1", 1)
    until(lambda: log.exists() and b"--- restart 2 ---" in log.read_bytes(), "rank 1 begins again twice")
    outcomes = execute.cancel(run.fleet, run.plan.run_id, 0.5)
    assert all(outcome.error is None for outcome in outcomes)
    ended.join(STUCK_S)
    for node in run.plan.nodes:
        assert not find_marked_processes(run.folder(node.name))
        assert (run.folder(node.name) / "done").exists()
