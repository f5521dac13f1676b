"""The record of a lab that is about to be built: where, until when, with which tags. An existing lab keeps all of these."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from decimal import Decimal

from gpucourse.aws import instances, tags
from gpucourse.aws.offerings import first_attempt, instance_type
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.aws.choice import Choice
from gpucourse.model.cloud import Offers
from gpucourse.model.deployment import AwsDeployment, Cloud
from gpucourse.model.event import Note
from gpucourse.storage import find_login
from gpucourse.units import later, now_utc, seconds_since


@dataclass(frozen=True, kw_only=True)
class AccountFacts:
    """Facts of the account: its number, the zones with their types, the address for which SSH is opened."""

    account: str
    zones: Offers
    ssh_cidr: str


def make_deployment(context: Context, choice: Choice, facts: AccountFacts) -> AwsDeployment:
    """Return the record with which the lab is planned, not stored yet. Raises MissingError if no zone has what it needs."""
    if choice.standing is not None:
        return _use_former_record(context, choice, choice.standing)
    kind = instance_type(choice.instance_type)
    place = first_attempt(facts.zones, kind.name, with_types=choice.with_types)
    if place is None:
        raise MissingError(
            f"no zone of {choice.region} offers {kind.name}",
            hint="another --gpu, or another --region: gpucourse doctor --target aws",
        )
    now = now_utc()
    return AwsDeployment(
        stack=choice.stack,
        uid=choice.former.uid if choice.former else f"{context.workspace.id}-{uuid.uuid4().hex[:12]}",
        module=choice.module.id,
        title=choice.module.title,
        template=choice.lab.template,
        phase="creating",
        created=now,
        updated=now,
        nodes_wanted=choice.nodes,
        cloud=Cloud(
            account=facts.account,
            region=choice.region,
            zone=place.zone,
            instance_type=place.instance_type,
            gpu=choice.gpu,
            market=choice.market,
            owner=tags.make_value(context.settings.owner or find_login()),
            ssh_cidr=facts.ssh_cidr,
            ttl_hours=choice.ttl_hours,
            expires=later(now, choice.ttl_hours * 3600),
            placement_group=choice.lab.placement_group and choice.nodes > 1 and kind.cluster_group,
        ),
    )


def hours_left(choice: Choice, deployment: AwsDeployment) -> Decimal:
    """Return the hours until the lab's end; 0 if it is over. A new lab has its whole time left."""
    if choice.standing is None:
        return Decimal(str(choice.ttl_hours))
    return max(Decimal(0), round(Decimal(str(-seconds_since(deployment.cloud.expires))) / 3600, 4))


def _use_former_record(context: Context, choice: Choice, deployment: AwsDeployment) -> AwsDeployment:
    """Return the existing record with the number of nodes; if its time is over and nothing runs any more, with a new end."""
    deployment.nodes_wanted = choice.nodes
    cloud = deployment.cloud
    cloud.reservation = None  # left by a command that was killed
    if seconds_since(cloud.expires) > 0 and not _has_live_instances(context, deployment):
        cloud.expires = later(now_utc(), cloud.ttl_hours * 3600)
        context.watch(Note(text=f"the time of {deployment.stack} was over: it gets {cloud.ttl_hours:g} hours more"))
    return deployment


def _has_live_instances(context: Context, deployment: AwsDeployment) -> bool:
    account = Account(deployment.cloud.region, context.environ)
    return any(instance.alive for instance in instances.find(account, stack=deployment.uid))
