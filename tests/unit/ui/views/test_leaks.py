from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import get_args

import pytest

from gpucourse.labs.aws.leaks import LeakScan, ScannedResource, Standing
from gpucourse.model.cloud import CloudResource
from gpucourse.ui.views import leaks
from tests.unit.ui.examples import END, render_page


@pytest.mark.parametrize("state", get_args(Standing))
def test_holdings_of_each_kind(state: Standing) -> None:
    tags = {"Project": "gpucourse", "Course": "c", "Module": "3", "Owner": "grace", "Expires": END}
    thing = CloudResource(
        kind="instance", id="i-0123456789abcdef0", region="us-east-2", remove="aws ec2", tags=tags, note="may not look"
    )
    scan = LeakScan(
        account="123456789012", course="mine", regions=("us-east-2",),
        things=[ScannedResource(resource=thing, state=state, stack="03-aws-t4")], usd_per_hour=Decimal(1),
    )  # fmt: skip
    page = render_page(leaks.holdings(scan))
    assert ("Remove them by hand\naws ec2" in page) == (state == "leak")
    assert ("Check by hand\naws ec2" in page) == ("may not look" in page) == (state == "unknown")
    assert ("no leaks" in page) == (state in {"standing", "another's"})
    assert ("grace" in page) == (state != "unknown")
    assert ("--everyone" in page) == (state == "another's")
    assert "other regions" in page
    assert "not looked at: mx-central-1" in render_page(leaks.holdings(replace(scan, unasked="not looked at: mx-central-1")))


def test_clean_result_names_what_is_left_and_how_to_remove_it() -> None:
    assert "2 resources removed; nothing is left." in render_page(leaks.clean_result(2, []))
    leftover = CloudResource(kind="vpc", id="vpc-1", region="us-east-2", remove="aws ec2 delete-vpc", tags={}, note="in use")
    page = render_page(leaks.clean_result(2, [leftover]))
    assert "in use" in page
    assert "Remove it by hand\naws ec2 delete-vpc" in page
