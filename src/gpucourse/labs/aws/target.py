"""The target `aws`: GPU instances in the learner's AWS account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.labs import aws
from gpucourse.labs.results import Health, PricedProposal
from gpucourse.labs.target import Target, call_when_used
from gpucourse.model.deployment import AwsDeployment

if TYPE_CHECKING:
    from gpucourse.context import Context


class AwsTarget(Target[PricedProposal, AwsDeployment]):
    """Labs that cost money. Their price is confirmed first, they end at a deadline, and a scan checks that they are gone."""

    name, label = "aws", "AWS"
    no_clock = ""
    flags = frozenset({"--gpu", "--size", "--spot", "--region", "--ttl", "--ssh-cidr", "--yes-over-budget"})
    serves = "labs on AWS. This lab is not on AWS and costs nothing"

    propose = call_when_used(lambda: aws.plan.propose)
    build = call_when_used(lambda: aws.build.build)
    take_down = call_when_used(lambda: aws.take_down.take_down)
    find_lost_nodes = call_when_used(lambda: aws.termination_reason.find_lost_nodes)
    stop = call_when_used(lambda: aws.stop_start.stop)
    start = call_when_used(lambda: aws.stop_start.start)
    more_time = call_when_used(lambda: aws.extend.more_time)
    extend = call_when_used(lambda: aws.extend.extend)
    keep = call_when_used(lambda: aws.extend.keep)
    allow_ip = call_when_used(lambda: aws.change.allow_ip)
    preview_destroy = call_when_used(lambda: aws.cost.preview_destroy)
    find_untracked = call_when_used(lambda: aws.leaks.find_untracked)
    remove_untracked = call_when_used(lambda: aws.leaks.remove_untracked)
    examine = call_when_used(lambda: aws.doctor.doctor)
    short_quotas = call_when_used(lambda: aws.doctor.short_quotas)
    request_quotas = call_when_used(lambda: aws.doctor.request_quotas)
    request_command = call_when_used(lambda: aws.plan.request_command)
    policy = call_when_used(lambda: aws.doctor.policy)
    setup = call_when_used(lambda: aws.doctor.setup)

    def health(self, context: Context, labs: Sequence[AwsDeployment], *, ask_nodes: bool) -> Health:
        """Return the health that the account reports. With `ask_nodes`, add the reports of the idle agents on the nodes."""
        if not labs and not context.paths.ledger.exists():  # nothing was ever built on AWS
            return Health()
        return aws.status.health(context, labs, ask_nodes=ask_nodes)

    def advise_on_unreachable(self, context: Context, deployment: AwsDeployment) -> tuple[str, str]:
        """Return the current cost, and advice: start stopped nodes, or allow this computer's new address."""
        mend = f"gpucourse allow-ip {deployment.module} lets this computer in if its address changed"
        if deployment.is_stopped:
            mend = f"gpucourse start {deployment.module} starts them"
        return aws.ledger.describe_cost_meanwhile(context.paths, deployment), mend
