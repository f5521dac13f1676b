"""The target `aws`: GPU instances in the learner's AWS account."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from gpucourse.errors import UsageError
from gpucourse.labs.health import Health, LabHealth
from gpucourse.labs.target import Target
from gpucourse.model.deployment import AwsDeployment, Deployment, Receipt

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.aws.propose import AwsProposal
    from gpucourse.labs.request import DeployRequest, PreflightRequest
    from gpucourse.labs.results import BuildResult, ChangeResult, Extension, PreflightReport, ShortQuota, StackCost
    from gpucourse.model.cloud import CloudResource, QuotaRequest


class AwsTarget(Target["AwsProposal", AwsDeployment]):
    """Labs that cost money: priced and confirmed before, limited in time, verified to be gone afterwards."""

    name, label = "aws", "AWS"
    no_clock = ""

    def propose(self, context: Context, request: DeployRequest) -> AbstractContextManager[AwsProposal]:
        """Check, plan and price the labs: see labs.aws.propose."""
        from gpucourse.labs.aws.propose import propose

        return propose(context, request)

    def build(self, context: Context, proposal: AwsProposal) -> BuildResult:
        """Build what was proposed: see labs.aws.build."""
        from gpucourse.labs.aws.build import build

        return build(context, proposal)

    def health(self, context: Context, labs: Sequence[AwsDeployment], *, ask_nodes: bool) -> Health:
        """Return what the account reports and, with `ask_nodes`, the idle agents on the nodes."""
        if not labs:
            return Health(warnings=_still_billed(context))
        from gpucourse.labs.aws.status import look

        seen = look(context, labs, ask_nodes=ask_nodes)
        return Health(
            labs={stack: LabHealth(nodes=outlook.nodes, outlook=outlook) for stack, outlook in seen.labs.items()},
            warnings=[
                f"no record explains {vm.id} ({vm.instance_type}, {vm.state}, {vm.region}) of this workspace: gpucourse leaks"
                for vm in seen.unrecorded
            ],
        )

    def take_down(self, context: Context, deployment: AwsDeployment, receipt: Receipt) -> None:
        """Take the lab down: see labs.aws.cleanup.take_down."""
        from gpucourse.labs.aws.cleanup.take_down import take_down

        take_down(context, deployment, receipt)

    def own_flags(self, request: DeployRequest) -> list[str]:
        """Return the flags about cost and access."""
        typed = {
            "--gpu": request.gpu,
            "--size": request.size,
            "--spot": request.spot is not None,
            "--region": request.region,
            "--ttl": request.ttl_s is not None,
            "--ssh-cidr": request.ssh_cidr,
            "--yes-over-budget": request.over_budget,
        }
        return [flag for flag, given in typed.items() if given]

    def refuse_elsewhere(self, request: DeployRequest, flags: Sequence[str]) -> UsageError:
        """Return the error for these flags: they have no meaning on nodes that cost nothing."""
        return UsageError(
            f"{', '.join(flags)}: only for a lab on AWS, and this one would cost nothing",
            hint=f"gpucourse deploy {request.module} --target aws",
        )

    def find_lost_nodes(self, context: Context, deployment: AwsDeployment) -> dict[str, str]:
        """Return the instances that ended by themselves."""
        from gpucourse.labs.aws.lost_nodes import find_lost_nodes

        return find_lost_nodes(context, deployment)

    def reach_again(self, context: Context, deployment: AwsDeployment) -> tuple[str, str]:
        """Return the current cost, and the advice: start stopped nodes, or allow this computer's new address."""
        from gpucourse.labs.aws.ledger import describe_cost_meanwhile

        if deployment.is_stopped:
            return describe_cost_meanwhile(context, deployment), f"gpucourse start {deployment.module} starts them"
        mend = f"gpucourse allow-ip {deployment.module} lets this computer in where its address changed"
        return describe_cost_meanwhile(context, deployment), mend

    def stop(self, context: Context, module: str, *, gpu: str | None) -> ChangeResult:
        """Pause a lab: see labs.aws.stop_start."""
        from gpucourse.labs.aws.stop_start import stop

        return stop(context, module, gpu=gpu)

    def start(self, context: Context, module: str, *, gpu: str | None, over_budget: bool) -> ChangeResult:
        """Start a stopped lab: see labs.aws.stop_start."""
        from gpucourse.labs.aws.stop_start import start

        return start(context, module, gpu=gpu, over_budget=over_budget)

    def more_time(self, context: Context, module: str, seconds: float, *, gpu: str | None) -> Extension:
        """Return what more time would mean: see labs.aws.extend."""
        from gpucourse.labs.aws.extend import more_time

        return more_time(context, module, seconds, gpu=gpu)

    def extend(self, context: Context, extension: Extension, *, over_budget: bool) -> ChangeResult:
        """Move the end of a lab: see labs.aws.extend."""
        from gpucourse.labs.aws.extend import extend

        return extend(context, extension, over_budget=over_budget)

    def keep(self, context: Context, module: str, seconds: float, *, gpu: str | None) -> ChangeResult:
        """Pause the idle agents of a lab: see labs.aws.extend."""
        from gpucourse.labs.aws.extend import keep

        return keep(context, module, seconds, gpu=gpu)

    def allow_ip(self, context: Context, module: str, *, cidr: str, gpu: str | None) -> ChangeResult:
        """Open SSH of a lab to another address: see labs.aws.allow_ip."""
        from gpucourse.labs.aws.allow_ip import allow_ip

        return allow_ip(context, module, cidr=cidr, gpu=gpu)

    def preview_destroy(self, context: Context, labs: Sequence[Deployment]) -> list[StackCost]:
        """Return what a destroy would take down: see labs.aws.cost."""
        from gpucourse.labs.aws.cost import preview_destroy

        return preview_destroy(context, labs)

    def find_untracked(self, context: Context, module: str | None) -> list[CloudResource]:
        """Return resources without a record: see labs.aws.cleanup.untracked."""
        from gpucourse.workspace import regions

        if not regions.read_used_regions(context.paths):
            return []
        from gpucourse.labs.aws.cleanup.untracked import find_untracked

        return find_untracked(context, module=module)

    def remove_untracked(self, context: Context, resources: list[CloudResource]) -> list[Receipt]:
        """Remove resources without a record: see labs.aws.cleanup.untracked."""
        from gpucourse.labs.aws.cleanup.untracked import remove_untracked

        return remove_untracked(context, resources)

    def examine(self, context: Context, look: PreflightRequest) -> PreflightReport:
        """Check what the account lacks for the labs: see labs.aws.doctor."""
        from gpucourse.labs.aws.doctor import doctor

        return doctor(context, look)

    def short_quotas(self, context: Context, look: PreflightRequest) -> list[ShortQuota]:
        """Return the quotas that are too small: see labs.aws.doctor."""
        from gpucourse.labs.aws.doctor import short_quotas

        return short_quotas(context, look)

    def request_quotas(self, context: Context, look: PreflightRequest, wanted: Sequence[ShortQuota]) -> list[QuotaRequest]:
        """Request more of these quotas: see labs.aws.doctor."""
        from gpucourse.labs.aws.doctor import request_quotas

        return request_quotas(context, look, wanted)

    def request_command(self, look: PreflightRequest) -> str:
        """Return the command that requests quotas: see labs.aws.plan."""
        from gpucourse.labs.aws.plan import request_command

        return request_command(look)

    def policy(self, region: str) -> str:
        """Return an IAM policy, as JSON, with the ARNs of the region's partition."""
        from gpucourse.aws.offerings import read_partition
        from gpucourse.aws.policy import policy_text

        return policy_text(read_partition(region))

    def setup(self, region: str) -> str:
        """Return a CloudFormation template, as JSON, with the ARNs of the region's partition."""
        from gpucourse.aws.offerings import read_partition
        from gpucourse.aws.policy import setup_text

        return setup_text(read_partition(region))


def _still_billed(context: Context) -> list[str]:
    """Return a warning about instances that still cost according to the ledger although no lab is on record."""
    if not context.paths.ledger.exists():
        return []
    from gpucourse.labs.aws import ledger

    open_ = [span.charge.item for span in ledger.read(context.paths.ledger).open() if span.charge.kind == "instance"]
    return (
        [f"no lab is on record, and the ledger says that these still cost: {', '.join(open_)}. Look: gpucourse leaks"]
        if open_
        else []
    )
