"""What a lab would cost, before the user confirms: line by line, to its deadline."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from gpucourse.aws.money import Charge, PriceBook, estimate, usd_over, usd_per_hour
from gpucourse.labs.aws.choice import Choice
from gpucourse.model.cloud import Market
from gpucourse.model.deployment import AwsDeployment


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """A type that is used if the requested one is sold out, and what the lab costs with it, in USD per hour."""

    instance_type: str
    usd_per_hour: Decimal


@dataclass(frozen=True, kw_only=True)
class Quote:
    """The price of one lab. `changes` is the plan, as (action, address); `hours` until its end, `usual_hours` what the module
    usually takes; `head` the type of a head without a GPU beside the nodes, if there is one. Amounts are USD."""

    stack: str
    module: str
    title: str
    region: str
    zone: str
    instance_type: str
    gpu: str
    market: Market
    nodes: int
    changes: list[tuple[str, str]]
    charges: tuple[Charge, ...]
    hours: Decimal
    expires: str
    usual_hours: Decimal
    head: str = ""
    siblings: tuple[Sibling, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what to know before confirming."""
        if not self.ends:
            return ()
        nodes = f"{self.ends} of its nodes go{'es' if self.ends == 1 else ''}"
        return (f"{self.stack}: {nodes}; what runs on this lab is stopped first, and its outputs are collected",)

    @property
    def creates(self) -> int:
        """Return how many resources are created, or created again."""
        return sum(action in {"create", "replace"} for action, _address in self.changes)

    @property
    def ends(self) -> int:
        """Return how many existing nodes are removed, or created again."""
        return sum(action in {"delete", "replace"} and "aws_instance" in address for action, address in self.changes)

    @property
    def per_hour(self) -> Decimal:
        """Return USD per hour while the lab exists."""
        return usd_per_hour(self.charges)

    @property
    def to_the_end(self) -> Decimal:
        """Return USD if the lab exists until its time is over."""
        return usd_over(self.per_hour, self.hours)

    @property
    def usually(self) -> Decimal:
        """Return USD for as long as the module usually takes."""
        return usd_over(self.per_hour, self.usual_hours)

    def document(self) -> dict[str, object]:
        """Return the quote for `--json`: amounts as text, USD."""
        return {
            **{key: value for key, value in vars(self).items() if key != "charges"},
            "notes": self.notes,
            "usd_per_hour": f"{self.per_hour:.4f}",
            "usd_to_the_end": f"{self.to_the_end:.2f}",
            "usd_usually": f"{self.usually:.2f}",
            "lines": [
                {
                    "what": line.what,
                    "kind": line.kind,
                    "usd_per_hour": f"{line.per_hour:.4f}",
                    "source": line.rate.source,
                    "date": line.rate.date,
                    "note": line.rate.note,
                }
                for line in self.charges
            ],
        }


def make_quote(
    choice: Choice, deployment: AwsDeployment, book: PriceBook, changes: list[tuple[str, str]], hours: Decimal
) -> Quote:
    """Return the quote of a lab according to its current record."""
    cloud = deployment.cloud
    need = choice.need.with_workers(instance_type=cloud.instance_type)
    return Quote(
        stack=deployment.stack,
        module=choice.module.id,
        title=choice.module.title,
        region=cloud.region,
        zone=cloud.zone,
        instance_type=cloud.instance_type,
        gpu=cloud.gpu,
        market=cloud.market,
        nodes=deployment.nodes_wanted,
        changes=changes,
        charges=estimate(book, need, market=cloud.market, zone=cloud.zone),
        hours=hours,
        expires=cloud.expires,
        usual_hours=need.hours,
        head=next(iter(choice.with_types), ""),
        siblings=tuple(
            Sibling(
                instance_type=kind,
                usd_per_hour=usd_per_hour(estimate(book, need.with_workers(instance_type=kind), market=cloud.market)),
            )
            for kind in choice.others
        ),
    )
