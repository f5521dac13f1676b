"""Store the records of deployments, one file for each stack.

A record is written before its stack is created, and kept until a leak scan has proved that nothing of the stack is left.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from gpucourse.errors import DamagedFile, MissingError
from gpucourse.model.deployment import AwsDeployment, Deployment, Phase, Receipt, deployment_class
from gpucourse.units import now_utc
from gpucourse.workspace.files import check_record, convert_record, read_each, read_json, read_record, write_record
from gpucourse.workspace.paths import WorkspacePaths

D = TypeVar("D", bound=Deployment)


def stack_name(module: str, target: str, gpu: str = "") -> str:
    """Return the name of a module's stack on a target, such as `03-local` or `b-local`. With a chosen GPU, it is
    `04-aws-l4`."""
    name = f"{module.zfill(2) if module.isdecimal() else module.lower()}-{target}"
    return f"{name}-{gpu}" if gpu else name


def save(paths: WorkspacePaths, deployment: Deployment, phase: Phase | None = None, error: str | None = None) -> None:
    """Store the record with its new phase, the time, and `error`. Without `phase`, the phase stays; without `error`, the
    former error is cleared."""
    deployment.phase = phase or deployment.phase
    deployment.error = error
    deployment.updated = now_utc()
    write_record(paths.deployment(deployment.stack), deployment, mode=0o600)


def load(paths: WorkspacePaths, stack: str) -> Deployment | None:
    """Return the record of one stack, or None if it is not deployed. Raises MissingError or NewerFormat if the record cannot be
    read."""
    file = paths.deployment(stack)
    document = read_json(file)
    target = document.get("target") if isinstance(document, dict) else None
    record = convert_record(file, document, deployment_class(target))
    if record is None:
        return None
    nodes = record.inventory.nodes if record.inventory else ()
    booked = record.cloud.reservation if isinstance(record, AwsDeployment) else None
    moments = (record.created, record.updated, record.expires, booked.until if booked else None)
    check_record(
        file,
        names=(record.stack, record.module, record.target, *(name for node in nodes for name in (node.name, node.mode))),
        moments=moments,
    )
    if record.stack != stack:  # its name becomes the folder that `destroy` removes
        raise DamagedFile(file, f"it is the record of {record.stack}")
    return record


def load_as(paths: WorkspacePaths, stack: str, kind: type[D]) -> D | None:
    """Return the record of one stack, or None if it is not deployed. Raises the errors of `load`, and DamagedFile if the record
    is of another kind."""
    record = load(paths, stack)
    if record is None or isinstance(record, kind):
        return record
    raise DamagedFile(paths.deployment(stack), f"it is the record of a lab on {record.target}")


def readable(paths: WorkspacePaths) -> tuple[list[Deployment], dict[str, MissingError]]:
    """Return the records that can be read, sorted by stack, and the errors of the other records, by stack."""
    return read_each([file.stem for file in sorted(paths.deployments.glob("*.json"))], lambda stack: load(paths, stack))


def every(paths: WorkspacePaths) -> list[Deployment]:
    """Return the records of all stacks, sorted by stack. Raises MissingError or NewerFormat if a record cannot be read."""
    records, errors = readable(paths)
    if errors:
        raise next(iter(errors.values()))
    return records


def list_of_module(paths: WorkspacePaths, module: str) -> list[Deployment]:
    """Return the records of a module's stacks, the most recently updated first. Raises MissingError or NewerFormat if one of
    them cannot be read."""
    records, errors = readable(paths)
    if error := next((error for stack, error in errors.items() if is_of_module(stack, module)), None):
        raise error
    of_this_module = [deployment for deployment in records if deployment.module == module]
    return sorted(of_this_module, key=lambda deployment: deployment.updated, reverse=True)


def is_of_module(stack: str, module: str) -> bool:
    """Return whether a stack of that name belongs to the module, even if its record cannot be read."""
    return stack.startswith(stack_name(module, ""))


def drop(paths: WorkspacePaths, stack: str) -> None:
    """Delete the record of a stack. Call it only after a leak scan has proved that nothing of the stack is left."""
    paths.deployment(stack).unlink(missing_ok=True)


def list_receipts(paths: WorkspacePaths) -> tuple[list[Receipt], list[MissingError]]:
    """Return the receipts of all destroys, oldest first, and the errors of receipts that cannot be read."""
    receipts, errors = read_each(sorted(paths.receipts.glob("*.json")), _read_receipt)
    return receipts, list(errors.values())


def _read_receipt(file: Path) -> Receipt | None:
    receipt = read_record(file, Receipt)
    if receipt is not None:
        check_record(file, names=(receipt.stack, receipt.module), moments=(receipt.created or None, receipt.destroyed))
    return receipt
