"""The target `slurm`: a cluster where the learner has an account."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from gpucourse.errors import GpucourseError, UnreachableError
from gpucourse.labs.hosts.target import ForgettableTarget
from gpucourse.labs.results import Health, LabHealth
from gpucourse.model.deployment import NodeHealth, SlurmDeployment

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.request import DeployRequest
    from gpucourse.labs.results import BuildResult, LoginReport
    from gpucourse.labs.slurm.deploy import SlurmProposal
    from gpucourse.labs.slurm.lab import SlurmLab


class SlurmTarget(ForgettableTarget["SlurmProposal", SlurmDeployment]):
    """Labs on a Slurm cluster. Only jobs are started there, and only a lab's own jobs and files are removed."""

    name = "slurm"
    no_clock = "the course neither starts nor ends the cluster"
    is_gone = "if you no longer have an account there"
    flags = frozenset({"--login", "--cluster", "--partition", "--account", "--qos", "--gpu", "--slurm", "--install", "--key"})
    serves = "a Slurm cluster where you have an account"
    implied_by = frozenset({"--login", "--cluster"})
    example = ("--login", "me@cluster")

    def propose(self, context: Context, request: DeployRequest) -> AbstractContextManager[SlurmProposal]:
        """Examine the cluster and propose it as a lab: see labs.slurm.deploy."""
        from gpucourse.labs.slurm.deploy import propose

        return propose(context, request)

    def build(self, context: Context, proposal: SlurmProposal) -> BuildResult:
        """Record the proposed lab and test it with a job: see labs.slurm.deploy."""
        from gpucourse.labs.slurm.deploy import build

        return build(context, proposal)

    def look(self, context: Context, request: DeployRequest) -> LoginReport:
        """Return the login node's report on the cluster: see labs.slurm.doctor."""
        from gpucourse.labs.slurm.doctor import examine

        return examine(context, request)

    def health(self, context: Context, labs: Sequence[SlurmDeployment], *, ask_nodes: bool) -> Health:
        """Return whether each login node accepts the login. With `ask_nodes`, also read the result of a probe that had to
        wait, and why runs wait."""
        return Health(labs={lab.stack: _inspect(context, lab, ask_nodes=ask_nodes) for lab in labs})

    def refresh(self, context: Context, deployment: SlurmDeployment) -> None:
        """Read the result of a probe that had to wait: see labs.slurm.deploy."""
        from gpucourse.labs.slurm.deploy import read_probe
        from gpucourse.runs.connect import Connections

        with Connections(context) as connections:
            read_probe(context, deployment, connections)

    def open_lab(self, context: Context, deployment: SlurmDeployment, *, without: Collection[str] = ()) -> SlurmLab:
        """Return the lab on the cluster."""
        from gpucourse.labs.slurm.lab import open_lab

        return open_lab(context, deployment, without=without)

    def advise_on_unreachable(self, context: Context, deployment: SlurmDeployment) -> tuple[str, str]:
        """Return advice: try the login node again, or forget the cluster if the account is gone."""
        retry = f"gpucourse deploy {deployment.module}{deployment.flag} tries the login node again"
        return "", f"{retry}; if your account is gone: gpucourse destroy {deployment.module} --forget-unreachable"


def _inspect(context: Context, lab: SlurmDeployment, *, ask_nodes: bool) -> LabHealth:
    """Return the state of the login node, and why runs wait, over one connection. If the node cannot be inspected, return the
    reason, so that other labs are still shown."""
    from gpucourse.labs.hosts.lab import ANSWER_S
    from gpucourse.labs.slurm.deploy import read_probe
    from gpucourse.labs.slurm.lab import open_lab
    from gpucourse.runs.connect import Connections
    from gpucourse.runs.settle import describe_waits
    from gpucourse.workspace import runs

    waits: dict[str, str] = {}
    problem = ""
    try:
        nodes = open_lab(context, lab).nodes
        with Connections(context, timeout_s=ANSWER_S) as connections:
            connections.reach(lab, nodes, scheduled=True)
            if ask_nodes:
                read_probe(context, lab, connections)
                active_runs = runs.list_unfinished(context.paths, lab.stack) if lab.phase == "ready" else []
                waits = describe_waits(active_runs, connections)
    except UnreachableError as error:
        problem = error.what
    except GpucourseError as error:
        return LabHealth(nodes=[NodeHealth(node=lab.stack, healthy=False, known=False, detail=error.what)])
    return LabHealth(nodes=[NodeHealth(node=node.name, healthy=not problem, detail=problem) for node in nodes], waits=waits)
