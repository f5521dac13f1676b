"""What the quota allows at a time: all labs in parallel, or some now and others afterwards; with fewer nodes if necessary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gpucourse.aws import instances, quota
from gpucourse.aws.offerings import instance_type
from gpucourse.aws.quota import Quotas
from gpucourse.aws.session import Account
from gpucourse.errors import GpucourseError
from gpucourse.labs.aws.choice import Choice
from gpucourse.model.cloud import CloudInstance, LabNeed, Market, Quota
from gpucourse.model.deployment import AwsDeployment


@dataclass(kw_only=True)
class Fit:
    """The labs to build now, those that have to wait until these are destroyed, and notes for the user. `fewer`: the number of
    nodes that would fit, if the learner typed more than the quota allows; else 0."""

    now: list[Choice] = field(default_factory=list)
    later: list[Choice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fewer: int = 0


def fit(
    quotas: Quotas,
    wanted: list[Choice],
    *,
    chosen: bool,
    networks: Callable[[Account], tuple[int, int]] = quota.networks,
) -> Fit:
    """Divide the labs by the rest of the quotas. An unknown limit counts as enough: the launch will show it.

    `chosen`: the learner typed the number of nodes, so it stays. The first lab is always in `now`: if it does not fit, the
    preflight says so. `networks` queries the account.
    """
    result = Fit(now=[choice for choice in wanted if choice.standing is not None])
    new = [choice for choice in wanted if choice.standing is None]
    if not new:
        return result
    market = new[0].market
    left = {(item.code, item.market): item.free for item in quotas.assess([choice.need for choice in new], market)}
    room = _count_free_networks(quotas.account, networks) if len(new) > 1 else None
    for choice in new:
        taken = choice if _holds(left, choice, market) else None
        smaller = _smaller(left, choice, market) if taken is None else None
        if not chosen:
            taken = taken or smaller
        elif smaller is not None:
            result.fewer = smaller.nodes
        full = room is not None and sum(item.standing is None for item in result.now) >= room
        if (taken is None or full) and result.now:
            result.later.append(choice)
            continue
        if taken is not None and taken.nodes < choice.nodes:
            result.notes.append(
                f"the quota holds {taken.nodes} nodes, not {choice.nodes}: module {choice.module.id} works with them as well"
            )
        for key, vcpus in _takes(taken or choice, market).items():
            free = left[key]
            left[key] = None if free is None else free - vcpus
        result.now.append(taken or choice)
    return result


def measure_growth(
    account: Account, need: LabNeed, standing: AwsDeployment, *, find: Callable[..., list[CloudInstance]] = instances.find
) -> LabNeed:
    """Return what an existing lab needs of the quota beside its running instances, in the type of its nodes: 0 machines if all
    run.

    Raises the errors of `Account.call`. `find` queries the account.
    """
    listed = find(account, stack=standing.uid)
    running = Counter(instance.instance_type for instance in listed if instance.state in {"pending", "running"})
    whole = need.with_workers(instance_type=standing.cloud.instance_type)
    missing = (replace(machines, count=max(0, machines.count - running[machines.instance_type])) for machines in whole.machines)
    return replace(whole, machines=tuple(missing), smaller="")


def count_fitting_nodes(choice: Choice, growth: LabNeed, quotas: list[Quota]) -> int:
    """Return how many nodes an existing lab may have within these quotas, if it lacks nodes; else 0."""
    workers = growth.machines[-1]
    kind = instance_type(workers.instance_type)
    free = next((item.free for item in quotas if item.code == kind.quota[workers.market(choice.market)]), None)
    stands = choice.nodes - workers.count
    return stands + free // kind.vcpus if free is not None else 0


def _count_free_networks(account: Account, networks: Callable[[Account], tuple[int, int]]) -> int | None:
    """Return how many more labs the region has room for, since each has a network of its own; None if unknown."""
    try:
        held, allowed = networks(account)
    except GpucourseError:
        return None
    return max(0, allowed - held)


def _smaller(left: dict[tuple[str, Market], int | None], choice: Choice, market: Market) -> Choice | None:
    least = choice.lab.min_nodes or choice.nodes
    return next(
        (less for count in range(choice.nodes - 1, least - 1, -1) if _holds(left, less := choice.with_nodes(count), market)),
        None,
    )


def _holds(left: dict[tuple[str, Market], int | None], choice: Choice, market: Market) -> bool:
    return all(free is None or vcpus <= free for key, vcpus in _takes(choice, market).items() for free in (left[key],))


def _takes(choice: Choice, market: Market) -> dict[tuple[str, Market], int]:
    return {key: sum(modules.values()) for key, modules in quota.needs([choice.need], market).items()}
