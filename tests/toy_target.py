"""A target in one file, with simulated nodes that are made without Terraform. It shows everything that a new target needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.labs.deploy import record_outcome
from gpucourse.labs.readiness import wait_until_ready
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.results import BuildResult, DeployResult, Health, LabHealth, Proposal
from gpucourse.labs.target import Target
from gpucourse.local import health
from gpucourse.model.deployment import Deployment, Receipt
from gpucourse.model.node import Inventory
from gpucourse.remote.keys import ensure_client_key
from gpucourse.units import now_utc
from gpucourse.workspace import deployments
from gpucourse.workspace.exercises import all_names, ensure_copies
from tests.simulated import SimulatedNodes


@dataclass(kw_only=True)
class ToyProposal(Proposal):
    """A lab that is about to exist."""

    deployment: Deployment


class ToyTarget(Target[ToyProposal, Deployment]):
    """Labs whose nodes are brought up by the tests' own helper."""

    name = "toy"
    no_clock = "toys stand until they are put away"

    @contextmanager
    def propose(self, context: Context, request: DeployRequest) -> Iterator[ToyProposal]:
        """Yield the record of a lab, with its stack's lock."""
        module, now = context.catalog.module(request.module), now_utc()
        stack = deployments.stack_name(module.id, self.name)
        with context.lock(stack, f"deploy {module.id}"):
            deployment = Deployment(
                stack=stack, uid=f"{context.workspace.id}-toy", module=module.id, title=module.title, target=self.name,
                template="toy", phase="creating", created=now, updated=now, nodes_wanted=request.nodes or 2,
            )  # fmt: skip
            proposal = ToyProposal(deployment=deployment)
            if request.dry_run:
                proposal.planned = _make_result(deployment, dry_run=True)
            yield proposal

    def build(self, context: Context, proposal: ToyProposal) -> BuildResult:
        """Bring the nodes up, and wait until they answer."""
        deployment = proposal.deployment
        ensure_copies(context.paths, context.folders.exercises, all_names(context.folders.exercises))
        with record_outcome(context.paths, deployment):
            nodes = _nodes(context, deployment)
            for name in _names(deployment):
                nodes.up(name)
            deployment.inventory = Inventory(stack=deployment.stack, nodes=tuple(nodes.nodes))
            wait_until_ready(context, context.paths.stack(deployment.stack), deployment.inventory)
        return BuildResult(labs=[_make_result(deployment, dry_run=False)])

    def health(self, context: Context, labs: Sequence[Deployment], *, ask_nodes: bool) -> Health:
        """Return the health of the nodes, according to their processes and folders."""
        return Health(
            labs={lab.stack: LabHealth(nodes=health.inspect(context.paths.stack(lab.stack).nodes, _names(lab))) for lab in labs}
        )

    def take_down(self, context: Context, deployment: Deployment, receipt: Receipt) -> None:
        """Take every node down, and search for leftovers."""
        nodes = _nodes(context, deployment)
        receipt.existed = receipt.removed = _names(deployment)
        for name in _names(deployment):
            nodes.down(name)
        receipt.leftovers = health.find_leftovers(nodes.folder, nodes.uid, [node.port for node in deployment.inventory.nodes])  # type: ignore[union-attr]


def _nodes(context: Context, deployment: Deployment) -> SimulatedNodes:
    ensure_client_key(context.paths.client_key)
    folder = context.paths.stack(deployment.stack).nodes
    return SimulatedNodes(folder=folder, key=context.paths.client_key, uid=deployment.uid)


def _names(deployment: Deployment) -> list[str]:
    return [f"node{number}" for number in range(deployment.nodes_wanted)]


def _make_result(deployment: Deployment, *, dry_run: bool) -> DeployResult:
    changes = [("create", name) for name in _names(deployment)]
    return DeployResult(deployment=deployment, changes=changes, dry_run=dry_run, seconds=0.0, healed=[])
