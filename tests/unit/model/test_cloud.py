from __future__ import annotations

import pytest

from gpucourse.model.cloud import CloudResource, LabNeed, Machines, Offers, Quota


@pytest.mark.parametrize(
    ("limit", "usage", "free", "enough"),
    [
        (16, 4, 12, True),
        (16, 6, 10, False),
        (8, None, None, False),
        (64, None, None, None),
        (None, 0, None, None),
        (4, 9, 0, False),
    ],
)
def test_quota_is_enough_when_its_free_part_covers_the_need(
    limit: int | None, usage: int | None, free: int | None, enough: bool | None
) -> None:
    quota = Quota(code="L-1", name="", market="spot", region="us-east-2", needed=12, limit=limit, used=usage)
    assert (quota.free, quota.enough) == (free, enough)


def test_lab_need_with_workers_changes_no_head() -> None:
    head = Machines(instance_type="t3.medium", spot=False)
    need = LabNeed(module="2", title="", machines=(head, Machines(instance_type="g4dn.xlarge")))
    assert need.with_workers(count=3).machines == (head, Machines(instance_type="g4dn.xlarge", count=3))
    assert [machines.market("spot") for machines in need.machines] == ["on-demand", "spot"]


def test_offers_find_the_zones_that_have_every_type() -> None:
    zones = ("us-east-2a", "us-east-2b")
    offers = Offers(
        region="us-east-2", by_type={"g": frozenset({"us-east-2a", "us-east-2b"}), "t": frozenset({"us-east-2b"})}, zones=zones
    )
    assert offers.find_common_zones() == ("us-east-2b",)
    assert offers.find_common_zones(frozenset({"g"})) == ("us-east-2a", "us-east-2b")
    assert offers.find_common_zones(frozenset({"p"})) == ()


def test_leftover_of_a_resource_has_its_region_and_note() -> None:
    volume = CloudResource(kind="volume", id="vol-1", region="us-east-2", remove="aws ...", note="in use")
    assert (volume.leftover.id, volume.leftover.remove) == ("vol-1 in us-east-2 (in use)", "aws ...")
