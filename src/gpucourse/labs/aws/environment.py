"""What a preflight needs to know besides the account: this computer, this workspace, and the budget."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial

from gpucourse.aws import offerings
from gpucourse.aws.caller import caller_cidr
from gpucourse.aws.money import PriceBook
from gpucourse.aws.preflight import LabEnvironment
from gpucourse.aws.quota import Quotas
from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.aws.budget import read_budget
from gpucourse.labs.request import PreflightRequest
from gpucourse.model.cloud import LabNeed, Market
from gpucourse.model.deployment import AwsDeployment
from gpucourse.provision.binary import find_terraform
from gpucourse.workspace import deployments, regions


def make_environment(
    context: Context, quotas: Quotas, labs: Sequence[LabNeed], book: PriceBook, market: Market, ssh_cidr: str
) -> LabEnvironment:
    """Return what the checks of labs that this workspace is about to build look at; with this computer's address if it is
    already known."""
    budget = read_budget(context, ())
    public = context.paths.client_key.with_name(f"{context.paths.client_key.name}.pub")
    types = [machines.instance_type for lab in labs for machines in lab.machines]
    return LabEnvironment(
        quotas=quotas,
        labs=labs,
        find_offers=partial(offerings.offers, quotas.account, types),
        market=market,
        terraform=_find_terraform_version(context),
        public_key=public.read_text(encoding="utf-8") if public.is_file() else "",
        ssh_cidr=ssh_cidr,
        book=book,
        budget=budget.budget,
        spent=budget.spent + budget.reserved,
        standing=frozenset(
            deployment.uid for deployment in deployments.every(context.paths) if isinstance(deployment, AwsDeployment)
        ),
        regions=regions.read_used_regions(context.paths),
        ask_address=partial(caller_cidr, context.environ),
    )


def _find_terraform_version(context: Context) -> str | None:
    try:
        return ".".join(map(str, find_terraform(context.environ).version))
    except MissingError:
        return None


def request_command(look: PreflightRequest) -> str:
    """Return the command that requests the quota of such labs from AWS, in the region in which they are to be built: an
    increase elsewhere is useless. The market is left out."""
    words = ["gpucourse", "doctor", "--target", "aws", "--request-quota"]
    for flag, value in (
        ("--module", look.module),
        ("--region", look.region),
        ("--gpu", ",".join(look.gpu)),
        ("--nodes", look.nodes),
    ):
        words += [flag, str(value)] if value else []
    return shlex.join(words)
