"""A launcher in one file: mpirun on the head, with a host file of all nodes. It shows what a new launcher takes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gpucourse.launch.launcher import LabFacts, Launcher, LaunchRequest
from gpucourse.launch.planning import make_plan
from gpucourse.model.node import Node
from gpucourse.model.plan import LaunchPlan, NodeCommand


class Mpi(Launcher[LabFacts]):
    """mpirun, which starts the ranks of all nodes from the first one."""

    name = "mpi"
    title = "mpirun on the first node"
    starts_ranks = True
    packages = ("mpi4py",)

    def plan(self, request: LaunchRequest, nodes: Sequence[Node], facts: LabFacts) -> LaunchPlan:
        """Return the plan: one command, which writes the host file and starts mpirun."""
        slots = request.processes or 1
        hosts = "".join(f"{node.private_address} slots={slots}\n" for node in nodes)
        ranks = tuple(range(slots * len(nodes)))
        mpirun = ["mpirun", "--hostfile", "hosts", "-np", str(len(ranks)), nodes[0].python, "-u", request.script]
        line = f"printf %s {shlex.quote(hosts)} > hosts && exec {shlex.join([*mpirun, *request.arguments])}"
        command = NodeCommand(node=nodes[0], argv=("sh", "-c", line), env=request.environment, ranks=ranks)
        return make_plan(request, [command], port=facts.port)
