"""What AWS said at a deploy is what the ledger counts with, whatever becomes of the file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from gpucourse.aws.pricing import PriceBook
from gpucourse.context import Context
from gpucourse.labs.aws.money import ledger as bill
from gpucourse.labs.aws.money.prices import read_prices, store_prices
from gpucourse.labs.aws.money.quote import make_quote
from gpucourse.model.money import Charge, Rate
from tests.unit.aws.cloud import ScriptedAccount
from tests.unit.labs.aws.fakes import choice_of, context_in, deployment_of

HERE, KIND = "us-east-2", "g4dn.2xlarge"
TODAY = Rate(usd_per_hour=Decimal("0.8123"), source="AWS Price List", date="2026-11-22")
SPOT = Rate(usd_per_hour=Decimal("0.3"), source="EC2 spot price history", date="2026-11-22")


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made, _events = context_in(tmp_path)
    store_prices(made, PriceBook(region=HERE, fresh=(((KIND, "on-demand", ""), TODAY), ((KIND, "spot", f"{HERE}a"), SPOT))))
    return made


def count_with(context: Context) -> PriceBook:
    """The prices that the ledger counts with."""
    books: list[PriceBook] = []

    def find_charges(_account: object, book: PriceBook, **_more: object) -> list[Charge]:
        books.append(book)
        return []

    bill.settle(context, ScriptedAccount({}), "s-1", find_charges=find_charges)
    return books[0]


def test_read_prices_gives_ledger_and_quote_one_price(context: Context) -> None:
    book = count_with(context)
    assert book.instance(KIND) == TODAY
    assert book.instance(KIND, "spot", f"{HERE}a") == SPOT
    quote = make_quote(choice_of(context.catalog.module("3")), deployment_of(), read_prices(context, HERE), [], Decimal(1))
    assert quote.charges[0].rate == TODAY
    elsewhere = PriceBook(region="us-west-2").instance(KIND)
    assert read_prices(context, "us-west-2").instance(KIND) == elsewhere, "each region keeps its own"


@pytest.mark.parametrize("amount", ['"-1"', '"NaN"', '"1e9"', '"much"', "[]"])
def test_read_prices_ignores_a_price_that_cannot_be(context: Context, amount: str) -> None:
    file = context.paths.prices
    file.write_text(file.read_text(encoding="utf-8").replace('"0.8123"', amount), encoding="utf-8")
    assert count_with(context).instance(KIND) == PriceBook(region=HERE).instance(KIND)
    store_prices(context, PriceBook(region=HERE, fresh=(((KIND, "on-demand", ""), TODAY),)))
    assert count_with(context).instance(KIND) == TODAY
