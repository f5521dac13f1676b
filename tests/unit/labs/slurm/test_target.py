from __future__ import annotations

from dataclasses import replace

from gpucourse.labs.status import status
from gpucourse.model.node import Inventory
from gpucourse.model.slurm_facts import ProbeFacts
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, runs
from tests.learning import Learning
from tests.unit.labs.records import save_slurm_run
from tests.unit.labs.slurm.test_deploy import make_lab
from tests.unit.labs.slurm.test_facts import LOGIN
from tests.unit.remote.agent_link import AgentNodes
from tests.unit.runs.test_connect import SilentNodes


def test_health_asks_for_the_probe_and_for_waiting_runs_over_one_connection(learning: Learning) -> None:
    context, nodes = learning.context, AgentNodes(learning.root / "nodes")
    lab = make_lab(ProbeFacts(state="pending", job="7"), inventory=Inventory(stack="03-slurm", nodes=(LOGIN,)))
    deployments.save(context.paths, replace(lab, stack="01-hosts", module="1", created=now_utc(), updated=now_utc()))
    run = save_slurm_run(context, [])
    run.state, run.ended, run.collected, run.nodes = "running", None, False, [LOGIN.name]
    runs.save(context.paths, run)
    programs = nodes.home(LOGIN.name) / "bin"
    programs.mkdir(parents=True)
    (programs / "squeue").write_text("#!/bin/sh\necho 'PENDING|Priority|N/A'\n")
    (programs / "squeue").chmod(0o700)
    [stack] = status(replace(context, make_transport=lambda _key: nodes)).stacks
    assert (stack.healthy, stack.active_run_ids) == (True, [run.id])
    assert "is waiting in the queue (Priority" in stack.deployment.lacks
    assert [link.node.name for link in nodes.links] == [LOGIN.name]
    [stack] = status(replace(context, make_transport=lambda _key: SilentNodes())).stacks
    assert [(node.healthy, node.known, node.detail) for node in stack.nodes] == [(False, True, "login does not answer")]
