"""Takes down a lab on machines that the program can reach: in the target's own way, then by a scan that believes nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError, StorageError
from gpucourse.model.deployment import Deployment, Leftover, Receipt
from gpucourse.model.event import Note, Watcher, stage
from gpucourse.workspace import deployments


class Removable(Protocol):
    """What stands of a lab, and how it goes."""

    def list_existing(self) -> list[str]:
        """What exists, for the receipt."""
        ...

    def down(self, watcher: Watcher) -> list[str]:
        """Remove everything that this deployment made; what was removed."""
        ...

    def scan_leftovers(self) -> list[Leftover]:
        """Look, by other means than a state file, for anything of this deployment that is still there."""
        ...

    def end_everything(self) -> None:
        """End and remove whatever `down` missed."""
        ...


def take_down(context: Context, deployment: Deployment, receipt: Receipt, lab: Removable) -> None:
    """Remove the lab, and write into the receipt what existed, what went and what is still there."""
    receipt.existed = lab.list_existing()
    with suppress(StorageError):  # a full disk must not keep a lab alive; the record as it is serves the next destroy
        deployments.save(context.paths, deployment, "destroying")
    with stage(context.watch, f"destroy {deployment.stack}", f"taking down {deployment.stack}"):
        receipt.removed = _down(context, lab)
    with stage(context.watch, f"leak scan {deployment.stack}", "looking for leftovers"):
        first = lab.scan_leftovers()
        if first:
            lab.end_everything()
        receipt.swept, receipt.leftovers = [f"{item.kind} {item.id}" for item in first], lab.scan_leftovers()


def _down(context: Context, lab: Removable) -> list[str]:
    try:
        return lab.down(context.watch)
    except (InfrastructureError, StorageError) as error:
        # What lives on this machine can be found and ended without Terraform; the leak scan decides whether that worked.
        context.watch(Note(text=f"{error.what}. Ending the nodes by their processes and folders.", level="warning"))
        lab.end_everything()
        return []
