"""Taking down a lab on machines that the program can reach: by the target's method, then by a scan that trusts no record."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError, StorageError
from gpucourse.model.deployment import Deployment, Leftover, Receipt
from gpucourse.model.event import Note, Watcher, stage
from gpucourse.workspace import deployments


class Removable(Protocol):
    """What exists of a lab, and how to remove it."""

    def list_existing(self) -> list[str]:
        """Return what exists, for the receipt."""
        ...

    def down(self, watcher: Watcher) -> list[str]:
        """Remove everything that this deployment created; return what was removed."""
        ...

    def scan_leftovers(self) -> list[Leftover]:
        """Search, by other means than a state file, for anything of this deployment that still exists, and return it."""
        ...

    def end_everything(self) -> None:
        """End and remove everything that `down` missed."""
        ...


def take_down(context: Context, deployment: Deployment, receipt: Receipt, lab: Removable) -> None:
    """Remove the lab, and write into the receipt what existed, what was removed and what remains."""
    receipt.existed = lab.list_existing()
    with suppress(StorageError):  # a full disk must not keep a lab alive; the next destroy can use the unchanged record
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
        # What is on this computer can be found and ended without Terraform; the leak scan decides whether that worked.
        context.watch(Note(text=f"{error.what}. Ending the nodes by their processes and folders.", level="warning"))
        lab.end_everything()
        return []
