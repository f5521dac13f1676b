"""`allow-ip`: after a change of this computer's address, opens SSH of a lab to the new address, and to no other."""

from __future__ import annotations

from gpucourse.aws import ingress
from gpucourse.aws.caller import caller_cidr, validate_cidr
from gpucourse.context import Context
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.account import account_of
from gpucourse.labs.aws.change import lock_lab
from gpucourse.labs.results import ChangeResult
from gpucourse.model.event import stage
from gpucourse.workspace import deployments


def allow_ip(context: Context, module: str, *, cidr: str = "", gpu: str | None = None) -> ChangeResult:
    """Open SSH of a lab to `cidr`, else to the address in the settings, else to this computer's public address.

    Raises UsageError for anything but one public address, MissingError if the address cannot be found or the lab has no rule.
    """
    with lock_lab(context, module, gpu=gpu, verb="allow-ip") as deployment:
        cloud = deployment.cloud
        given = cidr or context.settings.ssh_cidr
        wanted = validate_cidr(given) if given else caller_cidr(context.environ)
        with stage(context.watch, "allow", f"letting {wanted} in"):
            opened = ingress.allow(account_of(context, deployment), wanted, stack=deployment.uid)
        cloud.ssh_cidr = wanted
        deployments.save(context.paths, deployment)
        return ChangeResult(
            stack=deployment.stack,
            module=deployment.module,
            title=f"SSH of {deployment.stack} is open to {wanted}",
            changed=[f"{rule.now} instead of {rule.before} in {rule.group}" for rule in opened]
            or [f"{wanted} was allowed already"],
            expires=cloud.expires,
            usd_per_hour=ledger.per_hour(context, deployment),
            next=f"gpucourse ssh {deployment.module}",
        )
