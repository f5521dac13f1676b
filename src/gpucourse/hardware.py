"""The only table of GPUs and instance types, `exercises/shared/gpus.json`: to add a GPU, add one entry there.

The exercises read the GPUs' data sheets from the same file. The program reads only the part about AWS, and only from the file
that ships with it, so that no other course can change prices or quotas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

TABLE = Path("exercises") / "shared" / "gpus.json"


@dataclass(frozen=True, kw_only=True)
class _RentedGpu:
    """A GPU that AWS rents out.

    `types`: the instance types, by name.
    `offered`: the sizes of `family` that the course offers, if it offers any.
    `retired`: why AWS no longer offers the GPU; empty if AWS still does.
    `quota`: a key of `Hardware.quotas`.
    """

    gpu: str
    quota: str
    vram_mib: int
    types: Mapping[str, Mapping[str, Any]]
    family: str = ""
    offered: tuple[str, ...] = ()
    retired: str = ""

    @property
    def choice(self) -> str:
        """Return the GPU's name on the command line and in the settings, such as l4."""
        return self.gpu.lower()

    @property
    def startable_types(self) -> tuple[str, ...]:
        """Return the instance types that the course starts, smallest first."""
        return tuple(f"{self.family}.{size}" for size in self.offered)

    @property
    def usd_per_hour(self) -> Decimal:
        """Return the recorded on-demand price of the smallest startable type."""
        return Decimal(self.types[self.startable_types[0]]["usd_per_hour"])


@dataclass(frozen=True, kw_only=True)
class _QuotaFamily:
    """A vCPU quota and the instance families that share it.

    `families`: prefixes of the families' names.
    `by_market`: the quota's code and name for each market.
    """

    families: tuple[str, ...]
    by_market: Mapping[Literal["on-demand", "spot"], tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The hardware table. `prices`: where and when the on-demand and spot prices were read."""

    rented: tuple[_RentedGpu, ...]
    quotas: Mapping[str, _QuotaFamily]
    prices: Mapping[str, Mapping[str, Any]]

    @property
    def choosable_gpus(self) -> tuple[_RentedGpu, ...]:
        """Return the GPUs that a learner can choose, cheapest first."""
        return tuple(sorted((rented for rented in self.rented if rented.offered), key=lambda rented: rented.usd_per_hour))

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the command-line names of the GPUs that a learner can choose: t4, l4, and so on."""
        return tuple(rented.choice for rented in self.choosable_gpus)

    @property
    def startable_types(self) -> tuple[str, ...]:
        """Return every instance type with a GPU that the course starts."""
        return tuple(name for rented in self.choosable_gpus for name in rented.startable_types)

    def row(self, instance_type: str) -> Mapping[str, Any]:
        """Return the table's entry for an instance type, or an empty mapping if the type is not in the table."""
        return next((rented.types[instance_type] for rented in self.rented if instance_type in rented.types), {})

    def quota_of(self, instance_type: str) -> _QuotaFamily | None:
        """Return the quota that an instance type counts against, or None if the table does not have that quota.

        The type need not be in the table: the longest matching prefix of its name decides.
        """
        family = instance_type.split(".", maxsplit=1)[0]
        if family.startswith(("inf", "trn", "dl", "hpc")):
            return None
        fitting = [
            (len(beginning), quota)
            for quota in self.quotas.values()
            for beginning in quota.families
            if family.startswith(beginning)
        ]
        return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


@cache
def hardware() -> Hardware:
    """Return the table that ships with the program."""
    package = Path(__file__).resolve().parent
    places = (package / "_course" / TABLE, package.parent.parent / TABLE)  # installed, or a checkout
    return parse_hardware(next(place for place in places if place.is_file()).read_text(encoding="utf-8"))


def parse_hardware(text: str) -> Hardware:
    """Parse the text of a hardware table, and return only the part that the program needs."""
    data = json.loads(text)
    entries = [gpu["aws"] for gpu in data["gpus"] if "aws" in gpu] + data["without_sheet"]
    return Hardware(
        rented=tuple(_RentedGpu(**{**entry, "offered": tuple(entry.get("offered", ()))}) for entry in entries),
        quotas={
            name: _QuotaFamily(
                families=tuple(row["families"]),
                by_market={"on-demand": tuple(row["on-demand"]), "spot": tuple(row["spot"])},
            )
            for name, row in data["quotas"].items()
        },
        prices=data["prices"],
    )
