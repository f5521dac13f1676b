"""Choosing the next place to try if AWS has no capacity: another zone, then another type, and finally no placement group.

This code is pure. Every failure other than missing capacity is final.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from gpucourse.aws import failures
from gpucourse.errors import TerraformFailed
from gpucourse.model.cloud import Failure, Offers, Placement

_GROUP = ("placement group", "placementgroup", "placement_group")


@dataclass(kw_only=True)
class Route:
    """The places to try for one lab, in order.

    `instance_types`: the requested type, then the learner's alternatives.
    `with_types`: further types that the zone must offer.
    """

    zone_offers: Offers
    instance_types: tuple[str, ...]
    with_types: tuple[str, ...] = ()
    _tried: set[tuple[str, str]] = field(default_factory=set)

    def choose_next(self, place: Placement, failure: Failure) -> Placement | None:
        """Return the place to try after this one failed; None if no other place would help, or if all have been tried."""
        if place.placement_group and _is_about_group(failure):
            return replace(place, placement_group=False)
        if not failure.elsewhere:
            return None
        self._tried.add((place.zone, place.instance_type))
        following = self._find_next(failure.suggested, placement_group=place.placement_group)
        if following is None and place.placement_group:  # there is more room for separate nodes than for adjacent ones
            self._tried.clear()
            following = self._find_next((), placement_group=False)
        return following

    def _find_next(self, suggested: Sequence[str], *, placement_group: bool) -> Placement | None:
        """Return the first place that has not been tried yet. For each type, the zones that AWS suggested come first."""
        for kind in self.instance_types:
            zones = self.zone_offers.find_common_zones(frozenset({kind, *self.with_types}))
            for zone in dict.fromkeys([*(zone for zone in suggested if zone in zones), *zones]):
                if (zone, kind) not in self._tried:
                    return Placement(zone=zone, instance_type=kind, placement_group=placement_group)
        return None


def _is_about_group(failure: Failure) -> bool:
    """Return whether AWS lacked room for the placement group, rather than machines."""
    text = f"{failure.code} {failure.message}".lower()
    return failure.kind not in {"permission", "credentials", "throttle"} and any(words in text for words in _GROUP)


def classify_failure(error: TerraformFailed) -> Failure | None:
    """Return the AWS error that made Terraform fail; None if no error came from AWS. If there are several, return the one that
    decides what to do."""
    texts: Iterable[str] = error.every or (f"{error.summary}\n{error.detail}",)
    return failures.pick_deciding(failure for text in texts if (failure := failures.from_text(text)) is not None)
