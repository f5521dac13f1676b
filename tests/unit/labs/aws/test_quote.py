"""What a lab costs before anybody says yes, and the budget that it has to fit."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from gpucourse.aws.money import PriceBook
from gpucourse.errors import UsageError
from gpucourse.labs.aws.budget import Budget
from gpucourse.labs.aws.quote import Quote, make_quote
from tests.unit.labs.aws.fakes import CLUSTER, choice_of, context_in, deployment_of, module_with

TYPED = "gpucourse deploy 3 --target aws"
MADE = [("create", "aws_instance.node[0]"), ("update", "aws_vpc.this")]


def quote(tmp_path: Path, *, changes: list[tuple[str, str]] = MADE, hours: str = "4") -> Quote:
    context, _events = context_in(tmp_path)
    choice = choice_of(module_with(CLUSTER, context))
    deployment = deployment_of(instance_type="g4dn.xlarge")
    return make_quote(choice, deployment, PriceBook(region="us-east-2"), changes, Decimal(hours))


def test_make_quote_names_every_part_with_its_source_and_day(tmp_path: Path) -> None:
    lab_quote = quote(tmp_path)
    assert [line.kind for line in lab_quote.charges] == ["instance", "instance", "burst", "disk", "disk", "address", "storage"]
    head, workers, burst, disk, throughput, address, _storage = lab_quote.charges
    assert [str(head.units), str(workers.units)] == ["1", "3"]
    assert (burst.what, burst.per_hour) == ("CPU bursts of 1 x t3.medium, at most", Decimal("0.08"))
    assert (throughput.what, str(throughput.units)) == ("1125 MB/s more of disk", str(3 * 375))
    assert [str(disk.units), str(address.units)] == [str(30 + 3 * 120), "4"]
    assert all(line.rate.source and line.rate.date for line in lab_quote.charges)
    assert lab_quote.per_hour == sum(line.per_hour for line in lab_quote.charges)
    assert lab_quote.to_the_end == 4 * lab_quote.per_hour
    assert lab_quote.usually == lab_quote.usual_hours * lab_quote.per_hour
    assert lab_quote.creates == 1
    assert lab_quote.document()["usd_per_hour"] == f"{lab_quote.per_hour:.4f}"


def test_budget_check_refuses_more_than_is_left_unless_told_otherwise(tmp_path: Path) -> None:
    lab_quote = quote(tmp_path)
    enough = Budget(budget=lab_quote.to_the_end + 1, spent=Decimal(1))
    enough.check([lab_quote], over_budget=False, command=TYPED)
    short = Budget(budget=lab_quote.to_the_end + 1, spent=Decimal("1.01"))
    with pytest.raises(UsageError, match=r"would cost \$") as caught:
        short.check([lab_quote], over_budget=False, command=TYPED)
    assert f"{TYPED} --yes-over-budget" in caught.value.hint
    short.check([lab_quote], over_budget=True, command=TYPED)
    with pytest.raises(UsageError):
        enough.check([lab_quote, lab_quote], over_budget=False, command=TYPED)
    Budget(budget=None, spent=Decimal(1000)).check([lab_quote], over_budget=False, command=TYPED)
    exists = quote(tmp_path, changes=[("update", "aws_vpc.this")])
    Budget(budget=Decimal(0), spent=Decimal(1)).check([exists], over_budget=False, command=TYPED)


def test_make_quote_says_that_a_node_goes(tmp_path: Path) -> None:
    shrunk = quote(
        tmp_path, changes=[("delete", 'module.nodes.aws_instance.node["node1-on-demand"]'), ("update", "aws_vpc.this")]
    )
    assert (shrunk.ends, shrunk.creates) == (1, 0)
    assert "1 of its nodes goes" in shrunk.notes[0]
    assert shrunk.document()["notes"] == shrunk.notes
    assert quote(tmp_path).notes == ()
