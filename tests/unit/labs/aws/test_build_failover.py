"""Where to build next: other zones, then similar types, then without a placement group; and which failures are final."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.aws import failures
from gpucourse.errors import TerraformFailed
from gpucourse.labs.aws.build import Route, classify_failure
from gpucourse.model.cloud import Failure, Offers, Placement

A, B, C = "us-east-2a", "us-east-2b", "us-east-2c"
NO_ROOM = failures.classify("InsufficientInstanceCapacity", "We currently do not have sufficient capacity.")
NEVER_THERE = failures.classify("Unsupported", "not supported in your requested Availability Zone")


def offers(**by_type: str) -> Offers:
    """Return the zones (by their last letters) that offer each type."""
    return Offers(
        region="us-east-2",
        zones=(A, B, C),
        by_type={
            name.replace("_", ".", 1): frozenset(f"us-east-2{letter}" for letter in letters)
            for name, letters in by_type.items()
        },
    )


def walk(route: Route, failure: Failure, *, group: bool = False, start: str = A, kind: str = "g4dn.xlarge") -> list[str]:
    """Return every place that is tried if nothing works, as `zone type +` (+: close together)."""
    place: Placement | None = Placement(zone=start, instance_type=kind, placement_group=group)
    places: list[str] = []
    while place is not None and len(places) < 30:
        places.append(f"{place.zone[-1]} {place.instance_type}{' +' if place.placement_group else ''}")
        place = route.choose_next(place, failure)
    return places


def test_route_takes_every_zone_then_every_sibling_that_is_allowed_once() -> None:
    route = Route(zone_offers=offers(g4dn_xlarge="abc", g6_xlarge="ac"), instance_types=("g4dn.xlarge", "g6.xlarge"))
    assert walk(route, NO_ROOM) == ["a g4dn.xlarge", "b g4dn.xlarge", "c g4dn.xlarge", "a g6.xlarge", "c g6.xlarge"]
    route = Route(zone_offers=offers(g4dn_xlarge="ab", g6_xlarge="ab"), instance_types=("g4dn.xlarge",))
    assert walk(route, NEVER_THERE) == ["a g4dn.xlarge", "b g4dn.xlarge"]
    route = Route(
        zone_offers=offers(g4dn_xlarge="abc", t3_medium="ac"), instance_types=("g4dn.xlarge",), with_types=("t3.medium",)
    )
    assert walk(route, NO_ROOM) == ["a g4dn.xlarge", "c g4dn.xlarge"], "the head has to be there as well"
    failure = failures.classify("InsufficientInstanceCapacity", f"You can currently get g4dn.xlarge capacity by choosing {C}.")
    route = Route(zone_offers=offers(g4dn_xlarge="abc"), instance_types=("g4dn.xlarge",))
    assert walk(route, failure)[:2] == ["a g4dn.xlarge", "c g4dn.xlarge"], "a zone that AWS names comes first"


def test_route_tries_everywhere_together_then_apart() -> None:
    route = Route(zone_offers=offers(g4dn_xlarge="ab"), instance_types=("g4dn.xlarge",))
    assert walk(route, NO_ROOM, group=True) == ["a g4dn.xlarge +", "b g4dn.xlarge +", "a g4dn.xlarge", "b g4dn.xlarge"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("InvalidPlacementGroup.Duplicate", "The placement group already exists."),
        ("InsufficientInstanceCapacity", "There is not enough capacity in the placement group for this request."),
    ],
)
def test_route_leaves_out_a_placement_group_that_fails(code: str, message: str) -> None:
    failure = failures.classify(code, message)
    route = Route(zone_offers=offers(g4dn_xlarge="ab"), instance_types=("g4dn.xlarge",))
    placement = Placement(zone=B, instance_type="g4dn.xlarge", placement_group=True)
    assert route.choose_next(placement, failure) == replace(placement, placement_group=False)


NO_GROUP = "You are not authorized to perform: ec2:CreatePlacementGroup on the placement group"


@pytest.mark.parametrize(("code", "message"), [("VcpuLimitExceeded", "no"), ("UnauthorizedOperation", NO_GROUP)])
def test_route_ends_at_any_other_failure(code: str, message: str) -> None:
    route = Route(zone_offers=offers(g4dn_xlarge="abc"), instance_types=("g4dn.xlarge",))
    placement = Placement(zone=A, instance_type="g4dn.xlarge", placement_group=True)
    assert route.choose_next(placement, failures.classify(code, message)) is None


def test_classify_failure_takes_the_final_one_of_several_errors() -> None:
    text = "creating EC2 Instance: operation error EC2: RunInstances, api error {}: no\n"
    errors = [text.format("InsufficientInstanceCapacity"), text.format("VcpuLimitExceeded")]
    error = TerraformFailed("failed", summary=errors[0], every=errors)
    result = classify_failure(error)
    assert result is not None
    assert result.code == "VcpuLimitExceeded"
    assert classify_failure(TerraformFailed("a plan that makes no sense")) is None
