from __future__ import annotations

from decimal import Decimal

from gpucourse.labs.results import StackCost
from gpucourse.model.cloud import CloudResource
from gpucourse.ui.views import destroy_preview
from tests.unit.ui.examples import aws_deployment, render_page


def test_destroy_preview_shows_what_will_be_removed() -> None:
    labs = [StackCost(deployment=aws_deployment(), per_hour=Decimal("1.54"), spent=Decimal(3), runs=("20261121-101500-otter",))]
    untracked = CloudResource(
        kind="instance", id="i-0123456789abcdef0", region="us-east-2", remove="aws ec2 ...", state="running"
    )
    page = render_page(destroy_preview.destroy_preview(labs, untracked=[untracked], free_labs=2, discard=True))
    for words in ("03-aws-t4", "$1.54 an hour", "otter", "i-0123456789abcdef0", "2 labs that cost nothing", "will be lost"):
        assert words in page
