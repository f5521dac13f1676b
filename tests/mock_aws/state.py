"""The state of one mock account in addition to moto's own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moto.ec2.models import ec2_backends

from tests.mock_aws.call import Answer, Call
from tests.mock_aws.faults import Faults
from tests.mock_aws.permissions import Permission
from tests.mock_aws.quotas import Quotas

if TYPE_CHECKING:
    from tests.mock_aws.computers import SimulatedComputers

ACCOUNT_ID = "123456789012"
GONE = "terminated"
CALLS = "calls.jsonl"
PERMISSIONS = "permissions.jsonl"
UNIMPLEMENTED = "unimplemented.log"


def list_instances(backend: Any) -> Iterator[Any]:
    """Return the instances in a region that are not terminated."""
    for reservation in list(backend.reservations.values()):
        yield from (instance for instance in reservation.instances if instance.state != GONE)


@dataclass(kw_only=True)
class State:
    """One account. `folder`: for the logs and the addresses."""

    folder: Path
    faults: Faults = field(default_factory=Faults)
    quotas: Quotas = field(default_factory=Quotas)
    plan: str = "PAID"
    computers: SimulatedComputers | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)  # moto's state is not thread-safe
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def backends(self) -> Iterator[tuple[str, Any]]:
        """Return EC2's state in each region that has been used."""
        books = ec2_backends[ACCOUNT_ID]
        for region in sorted(dict.keys(books)):
            yield region, books[region]

    def instances(self) -> Iterator[tuple[str, Any]]:
        """Return every instance that was ever launched, with its region."""
        for region, backend in self.backends():
            for reservation in list(backend.reservations.values()):
                for instance in reservation.instances:
                    yield region, instance

    def journal(self, call: Call, answer: Answer) -> None:
        """Record a call and its answer."""
        entry = {
            "at": time.time(),
            "service": call.service,
            "action": call.action,
            "region": call.region,
            "params": dict(call.params),
            "status": answer.status,
            "code": answer.code,
            "invocation": call.invocation,
        }
        self._append(CALLS, json.dumps(entry, default=str))

    def note_permissions(self, call: Call, permissions: Iterable[Permission]) -> None:
        """Record the permissions that a call needed."""
        permission_list = list(permissions)
        entry = {
            "call": call.name,
            "asked": [[permission.action, permission.resource, dict(permission.context)] for permission in permission_list],
            "refused": [
                [permission.action, permission.resource] for permission in permission_list if not permission.is_allowed
            ],
        }
        self._append(PERMISSIONS, json.dumps(entry))

    def note_unimplemented(self, call: Call, reason: str) -> None:
        """Record, and print, that a call is not implemented."""
        self._append(UNIMPLEMENTED, f"{call.name} {reason} {json.dumps(dict(call.params), default=str)}")

    def _append(self, name: str, line: str) -> None:
        with self._writing, (self.folder / name).open("a", encoding="utf-8") as log:
            log.write(line + "\n")
