"""`destroy`: outputs home first, then Terraform, then a sweep that does not trust Terraform, then a receipt."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from gpucourse.actions.context import Context
from gpucourse.actions.homecoming import bring_home
from gpucourse.actions.lab import Lab, open_lab
from gpucourse.actions.timing import stage
from gpucourse.errors import GpucourseError, InfrastructureError, LeftoverError, StorageError
from gpucourse.model.deployment import Deployment, Leftover, Receipt
from gpucourse.model.event import Event, Note, ResourceEvent, Watcher
from gpucourse.units import now_utc
from gpucourse.workspace import deployments
from gpucourse.workspace.files import write_record
from gpucourse.workspace.lock import locked

AT_ONCE = 4  # Terraform takes some hundred megabytes a stack on the cloud


@dataclass(frozen=True, kw_only=True)
class Destroyed:
    """What `destroy` did: a receipt for every stack that is gone, an error for every one that is not."""

    receipts: list[Receipt]
    errors: list[GpucourseError]


def destroy(context: Context, module_ids: list[str] | None, *, discard: bool) -> Destroyed:
    """Take down the labs of these modules, with None of all. Every stack is tried, whatever happens to the others."""
    wanted = None if module_ids is None else {context.catalog.module(module_id).id for module_id in module_ids}
    stacks = [found.stack for found in deployments.every(context.paths) if wanted is None or found.module in wanted]
    receipts: list[Receipt] = []
    errors: list[GpucourseError] = []

    def one(stack: str) -> None:
        own = context if len(stacks) == 1 else replace(context, watch=_named(context.watch, stack))
        try:
            receipt = _destroy_stack(own, stack, discard=discard)
        except GpucourseError as error:
            errors.append(error)
        else:
            if receipt is not None:
                receipts.append(receipt)

    if len(stacks) == 1:  # in this thread, where Ctrl-C arrives
        one(stacks[0])
    elif stacks:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                list(pool.map(one, stacks))
            except KeyboardInterrupt:
                context.stop.set()
                raise
    return Destroyed(receipts=sorted(receipts, key=lambda receipt: receipt.stack), errors=errors)


def _destroy_stack(context: Context, stack: str, *, discard: bool) -> Receipt | None:
    def waiting(holder: str) -> None:
        context.watch(Note(text=f"waiting for {holder}", level="warning"))

    with locked(context.paths.lock(stack), f"destroy {stack}", on_wait=waiting):
        deployment = deployments.load(context.paths, stack)
        if deployment is None:  # another command was faster
            return None
        receipt = Receipt(
            stack=stack,
            uid=deployment.uid,
            module=deployment.module,
            mode=deployment.target,
            created=deployment.created,
            destroyed=now_utc(),
            nodes=[f"{node.name} {node.address}:{node.port}" for node in deployment.inventory.nodes]
            if deployment.inventory
            else [],
        )
        home = bring_home(context, deployment, discard=discard)
        receipt.outputs_home, receipt.outputs_discarded = home.fetched, home.given_up
        lab = open_lab(context, deployment)
        receipt.existed = lab.existed()
        with suppress(StorageError):  # a full disk must not keep a lab alive; the record as it is serves the next destroy
            deployments.save(context.paths, deployment, "destroying")
        with stage(context.watch, f"destroy {stack}", f"taking down {stack}"):
            receipt.removed = _take_down(context, lab)
        with stage(context.watch, f"sweep {stack}", "looking for left-overs"):
            receipt.swept, receipt.leftovers = _sweep(lab)
        receipt.destroyed = now_utc()
        if not receipt.leftovers:
            shutil.rmtree(lab.folder, ignore_errors=True)
        write_record(context.paths.receipt(time.strftime("%Y%m%d-%H%M%S"), stack), receipt)
        if receipt.leftovers:
            raise _still_there(context, deployment, receipt.leftovers)
        deployments.drop(context.paths, stack)
        return receipt


def _named(watch: Watcher, stack: str) -> Watcher:
    """Stacks that go side by side have resources of the same name: each is told with its stack."""

    def tell(event: Event) -> None:
        watch(replace(event, address=f"{stack} {event.address}") if isinstance(event, ResourceEvent) else event)

    return tell


def _take_down(context: Context, lab: Lab) -> list[str]:
    try:
        return lab.down(context.watch)
    except (InfrastructureError, StorageError) as error:
        # What lives on this machine can be found and ended without Terraform; the sweep decides whether that worked.
        context.watch(Note(text=f"Terraform could not: {error.what}. Ending the nodes without it.", level="warning"))
        lab.end_everything()
        return []


def _sweep(lab: Lab) -> tuple[list[str], list[Leftover]]:
    found = lab.sweep()
    if found:
        lab.end_everything()
    return [f"{item.kind} {item.id}" for item in found], lab.sweep()


def _still_there(context: Context, deployment: Deployment, leftovers: list[Leftover]) -> LeftoverError:
    listed = "; ".join(f"{item.kind} {item.id} ({item.remove})" for item in leftovers)
    error = f"still there after destroying {deployment.stack}: {listed}"
    deployments.save(context.paths, deployment, "failed", error=error)
    return LeftoverError(error, hint=f"remove these by hand, then: gpucourse destroy {deployment.module}")
