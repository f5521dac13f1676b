"""`destroy`: collect outputs, run Terraform, scan for leaks without trusting Terraform, and write a receipt."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, InfrastructureError, LeftoverError, MissingError, StorageError, UsageError
from gpucourse.labs.collect_before_destroy import LABS_AT_ONCE, collect_runs
from gpucourse.labs.target import HasClock, Searchable, find_target, load_targets
from gpucourse.model.cloud import CloudResource
from gpucourse.model.deployment import Deployment, Leftover, Receipt
from gpucourse.model.event import Note, Watcher, label_events, stage
from gpucourse.parallel import try_all
from gpucourse.units import now_utc
from gpucourse.workspace import deployments
from gpucourse.workspace.files import write_record

if TYPE_CHECKING:
    from gpucourse.labs.results import StackCost


MAX_SHOWN = 600  # characters of commands in one hint


@dataclass(frozen=True, kw_only=True)
class DestroyRequest:
    """The labs to destroy. A field that is None restricts nothing: every module, any target, any GPU.

    `forget_unreachable`: forget labs on machines that cannot be reached, if they cannot cost money.
    """

    module: str | None = None
    target: str | None = None
    gpu: str | None = None
    forget_unreachable: bool = False

    @property
    def everything(self) -> bool:
        """Return whether the request includes every lab."""
        return self.module is None and self.target is None and self.gpu is None


@dataclass(kw_only=True)
class Survey:
    """The labs and resources to destroy.

    `others`: the recorded labs that are not destroyed.
    `unreadable`: why records of requested labs cannot be read.
    `untracked`: this workspace's resources that no record lists, by target.
    `trouble`: why a target could not be queried.
    """

    labs: list[Deployment]
    others: list[Deployment] = field(default_factory=list)
    unreadable: list[MissingError] = field(default_factory=list)
    untracked: dict[str, list[CloudResource]] = field(default_factory=dict)
    trouble: GpucourseError | None = None

    @property
    def all_untracked(self) -> list[CloudResource]:
        """Return all untracked resources, on any target."""
        return [thing for things in self.untracked.values() for thing in things]


@dataclass(frozen=True, kw_only=True)
class DestroyResult:
    """The result of `destroy`: a receipt for every stack that was processed, and an error for every stack that still exists."""

    receipts: list[Receipt]
    errors: list[GpucourseError]


def survey(context: Context, request: DestroyRequest) -> Survey:
    """Return the requested labs and, from the targets, this workspace's resources that no record lists.

    The targets are queried only if all labs are requested, or if the request names no GPU and no recorded lab matches it.
    Raises UnknownName for a module that the course does not have. Raises UsageError if the request is to forget labs, but none
    of them may be forgotten.
    """
    module = None if request.module is None else context.catalog.module(request.module).id
    records, errors = deployments.readable(context.paths)
    unreadable = [error for stack, error in errors.items() if module is None or deployments.is_of_module(stack, module)]
    labs = [
        lab
        for lab in records
        if module in {None, lab.module} and request.target in {None, lab.target} and request.gpu in {None, lab.gpu}
    ]
    if request.forget_unreachable:
        _check_forgettable(context.watch, labs, everything=request.everything)
    result = Survey(labs=labs, others=[lab for lab in records if lab not in labs], unreadable=unreadable)
    if not (request.everything or (not labs and request.gpu is None)):
        return result
    for target in load_targets():
        if isinstance(target, Searchable) and request.target in {None, target.name}:
            try:
                if resources := target.find_untracked(context, module):
                    result.untracked[target.name] = resources
            except GpucourseError as error:
                result.trouble = result.trouble or error
    return result


def preview_destroy(context: Context, labs: Sequence[Deployment]) -> list[StackCost]:
    """Return the current and past costs of these labs. Labs that cost nothing are left out."""
    return [cost for target in load_targets() if isinstance(target, HasClock) for cost in target.preview_destroy(context, labs)]


def _check_forgettable(watch: Watcher, labs: Sequence[Deployment], *, everything: bool) -> None:
    """Report which labs are never forgotten. Raises UsageError if the request names only such labs."""
    other_labs = [lab for lab in labs if not find_target(lab.target).forgettable]
    reasons = [
        f"{lab.stack} is never forgotten: " + ("it may be billed" if lab.costs else "it is on this computer")
        for lab in other_labs
    ]
    if other_labs and len(other_labs) == len(labs) and not everything:
        raise UsageError(
            f"--forget-unreachable is for labs on your own machines (--target hosts). {'; '.join(reasons)}",
            hint=f"gpucourse destroy {other_labs[0].module}{other_labs[0].flag}",
        )
    for lab, reason in zip(other_labs, reasons, strict=True):
        if lab.costs:
            watch(Note(text=f"{reason}. It is taken down as usual", level="warning"))


def destroy(context: Context, survey_result: Survey, *, discard: bool, forget_unreachable: bool = False) -> DestroyResult:
    """Take down everything that the survey found, and return the receipts and errors. If one stack fails, the others are still
    taken down."""
    stacks = [lab.stack for lab in survey_result.labs]
    receipts: list[Receipt] = []
    errors: list[GpucourseError] = list(survey_result.unreadable)

    def destroy_stack(stack: str) -> None:
        several = len(stacks) > 1
        labelled = context.watched_by(label_events(context.watch, stack, stages=False)) if several else context
        _destroy_stack(labelled, stack, receipts, discard=discard, forget_unreachable=forget_unreachable)

    ends = try_all([partial(destroy_stack, stack) for stack in stacks], limit=LABS_AT_ONCE, on_interrupt=context.stop.set)
    errors += [end for end in ends if end is not None]
    for name, things in survey_result.untracked.items():
        try:
            _destroy_untracked(context, name, things, receipts)
        except GpucourseError as error:
            errors.append(error)
    if survey_result.trouble and not any(type(error) is type(survey_result.trouble) for error in errors):
        errors.append(survey_result.trouble)
    return DestroyResult(receipts=sorted(receipts, key=lambda receipt: receipt.stack), errors=errors)


def _destroy_stack(context: Context, stack: str, receipts: list[Receipt], *, discard: bool, forget_unreachable: bool) -> None:
    with context.lock(stack, f"destroy {stack}"):
        deployment = deployments.load(context.paths, stack)
        if deployment is None:  # another command was faster
            return
        receipt = Receipt(
            stack=stack,
            uid=deployment.uid,
            module=deployment.module,
            mode=deployment.mode,
            created=deployment.created,
            destroyed=now_utc(),
            nodes=[f"{node.name} {node.address}:{node.port}" for node in deployment.inventory.nodes]
            if deployment.inventory
            else [],
        )
        target = find_target(deployment.target)
        unreachable = target.find_unreachable_nodes(context, deployment) if forget_unreachable else {}
        collected = collect_runs(context, deployment, discard=discard, unreachable=unreachable)
        receipt.outputs_home, receipt.outputs_discarded = collected.fetched, collected.given_up
        try:
            target.take_down_reachable(context, deployment, receipt, unreachable)
        except LeftoverError as error:  # what is left is unknown, so there is nothing to write into a receipt
            deployments.save(context.paths, deployment, "destroying", error=error.what)
            raise
        receipt.destroyed = now_utc()
        folder = context.paths.stack(stack).folder
        if not receipt.leftovers:
            shutil.rmtree(folder, ignore_errors=True)
        write_record(context.paths.receipt(time.strftime("%Y%m%d-%H%M%S"), stack), receipt)
        receipts.append(receipt)
        if receipt.leftovers:
            leftover_error = _make_leftover_error(receipt)
            deployments.save(context.paths, deployment, "destroying", error=leftover_error.what)
            raise leftover_error
        deployments.drop(context.paths, stack)
        if receipt.forgotten:
            raise _make_forgotten_error(receipt)


def _destroy_untracked(context: Context, name: str, things: list[CloudResource], receipts: list[Receipt]) -> None:
    target = find_target(name)
    new_receipts = target.remove_untracked(context, things) if isinstance(target, Searchable) else []
    for receipt in new_receipts:
        write_record(context.paths.receipt(time.strftime("%Y%m%d-%H%M%S"), receipt.stack), receipt)
        receipts.append(receipt)
    incomplete = [receipt for receipt in new_receipts if receipt.leftovers]
    if incomplete:
        raise _make_leftover_error(*incomplete)


def _make_forgotten_error(receipt: Receipt) -> LeftoverError:
    """Return the error that lists what may be left on each machine.

    The receipt contains the commands that remove these items. If the commands are short, the error contains them as well.
    """
    item_ids = "; ".join(item.id for item in receipt.forgotten)
    commands = " and ".join(item.remove for item in receipt.forgotten)
    remedy = commands if len(commands) <= MAX_SHOWN else "run the commands in the receipt"
    return LeftoverError(
        f"{receipt.stack} is forgotten; machines that could not be reached may still have these parts of it: {item_ids}",
        hint=f"once a machine can be reached again: {remedy}",
    )


def _make_leftover_error(*receipts: Receipt) -> LeftoverError:
    """Return the error that lists the leftovers. The receipts contain the reasons, and a command that removes each item."""
    leftovers = [item for receipt in receipts for item in receipt.leftovers]
    item_names = ", ".join(f"{item.kind} {item.id.split(' (', 1)[0]}" for item in leftovers)
    command = (
        f"gpucourse destroy {receipts[0].module}" if len(receipts) == 1 and receipts[0].created else "gpucourse destroy --all"
    )
    return LeftoverError(
        f"still there after destroying {', '.join(receipt.stack for receipt in receipts)}: {item_names}",
        hint=f"type it again: {command}; or remove them by hand, with the commands in the receipt",
    )


class Removable(Protocol):
    """A lab that can be listed and removed."""

    def list_existing(self) -> list[str]:
        """Return the existing parts of the lab, for the receipt."""

    def down(self, watcher: Watcher) -> list[str]:
        """Remove everything that this deployment created; return the removed parts."""

    def scan_leftovers(self) -> list[Leftover]:
        """Return everything that still exists of this deployment, without relying on a state file."""

    def end_everything(self) -> None:
        """End and remove everything that `down` missed."""


def take_down(context: Context, deployment: Deployment, receipt: Receipt, lab: Removable) -> None:
    """Remove the lab. The receipt lists what existed, what was removed and what remains."""
    receipt.existed = lab.list_existing()
    with suppress(StorageError):  # a full disk must not keep a lab alive; the next destroy can use the unchanged record
        deployments.save(context.paths, deployment, "destroying")
    with stage(context.watch, f"destroy {deployment.stack}", f"taking down {deployment.stack}"):
        receipt.removed = _down(context.watch, lab)
    with stage(context.watch, f"leak scan {deployment.stack}", "looking for leftovers"):
        first = lab.scan_leftovers()
        if first:
            lab.end_everything()
        receipt.swept, receipt.leftovers = [f"{item.kind} {item.id}" for item in first], lab.scan_leftovers()


def _down(watch: Watcher, lab: Removable) -> list[str]:
    try:
        return lab.down(watch)
    except (InfrastructureError, StorageError) as error:
        # What is on this computer can be found and ended without Terraform; the leak scan decides whether that worked.
        watch(Note(text=f"{error.what}. Ending the nodes by their processes and folders.", level="warning"))
        lab.end_everything()
        return []
