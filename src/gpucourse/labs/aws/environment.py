"""What a preflight needs to know besides the account: this computer, this workspace, and the budget."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial

from gpucourse.aws.caller import caller_cidr
from gpucourse.aws.money import PriceBook
from gpucourse.aws.preflight import LabEnvironment
from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.aws.budget import read_budget
from gpucourse.model.cloud import Market
from gpucourse.model.deployment import AwsDeployment
from gpucourse.provision.binary import find_terraform
from gpucourse.workspace import deployments, regions


def make_environment(context: Context, book: PriceBook, market: Market, ssh_cidr: str, request: str) -> LabEnvironment:
    """Return the environment of a lab that this workspace is about to build, with this computer's address if it is already
    known, and the command that requests the lab's quota."""
    budget = read_budget(context, ())
    return LabEnvironment(
        market=market,
        terraform=_terraform(context),
        public_key=_public_key(context),
        ssh_cidr=ssh_cidr,
        book=book,
        budget=budget.budget,
        spent=budget.spent + budget.reserved,
        standing=frozenset(
            deployment.uid for deployment in deployments.every(context.paths) if isinstance(deployment, AwsDeployment)
        ),
        regions=regions.read_used_regions(context.paths),
        ask_address=partial(caller_cidr, context.environ),
        request=request,
    )


def request_command(module: str | None, *, region: str | None, gpu: Sequence[str], nodes: int | None) -> str:
    """Return the command that requests the quota of such labs from AWS, in the region in which they are to be built: an
    increase elsewhere is useless. The market is left out."""
    words = ["gpucourse", "doctor", "--target", "aws", "--request-quota"]
    for flag, said in (("--module", module), ("--region", region), ("--gpu", ",".join(gpu)), ("--nodes", nodes)):
        words += [flag, str(said)] if said else []
    return shlex.join(words)


def _terraform(context: Context) -> str | None:
    try:
        return ".".join(map(str, find_terraform(context.environ).version))
    except MissingError:
        return None


def _public_key(context: Context) -> str:
    public = context.paths.client_key.with_name(f"{context.paths.client_key.name}.pub")
    return public.read_text(encoding="utf-8") if public.is_file() else ""
