"""Finding the regions of the account that contain anything of the course, for a user who lost the list of regions used."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from gpucourse.aws import resource_scan, tags
from gpucourse.aws.kinds import INSTANCE, NETWORK, VOLUME
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, CredentialsError, PermissionRefused
from gpucourse.parallel import run_all

AT_ONCE = 8
_TELLING = (INSTANCE, VOLUME, NETWORK)  # each lab has a network; these, and shared storage, cost money
_REFUSED = (CloudError, CredentialsError, PermissionRefused)  # a region that is not enabled answers AuthFailure


def find_regions_in_use(account: Account, *, besides: Collection[str]) -> tuple[list[str], str]:
    """Return the enabled regions, except `besides`, that contain resources of the course; and why some could not be checked,
    empty if all were.

    One call per region, to the API that lists by tag: enough to know where a leak scan is worth its calls.
    """
    try:
        answer = account.call("ec2", "describe_regions")["Regions"]  # without AllRegions: those that are enabled
    except CloudError as error:
        return [], f"the account's other regions could not be listed: {error.what}"
    except PermissionRefused as error:
        return [], f"the account's other regions could not be listed: not allowed: {error.action}"
    others = sorted({str(region["RegionName"]) for region in answer} - set(besides))
    answers = run_all([partial(_holds, account.in_region(name)) for name in others], limit=AT_ONCE)
    seen = dict(zip(others, answers, strict=True))
    blind = [name for name, there in seen.items() if there is None]
    unasked = f"not looked at, since AWS did not let us or did not answer: {', '.join(blind)}" if blind else ""
    return [name for name, there in seen.items() if there], unasked


def _holds(place: Account) -> bool | None:
    """Return whether the region contains resources of the course; None if that could not be determined."""
    filters = [{"Key": key, "Values": [value]} for key, value in tags.make_project_tags().items()]
    for look in (
        lambda: place.pages("resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=filters),
        lambda: _iterate_tagged(place),
    ):
        try:
            return _has_items(look())
        except _REFUSED:
            continue
    return None


def _iterate_tagged(place: Account) -> Iterator[object]:
    for kind in _TELLING:
        yield from resource_scan.items(place, kind, tags.make_project_tags())
    yield from resource_scan.file_systems(place, tags.make_project_tags())


def _has_items(things: Iterable[object]) -> bool:
    return any(True for _one in things)
