"""What is in the books of a region."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

GONE = "terminated"


def list_instances(backend: Any) -> Iterator[Any]:
    """The instances that are not terminated."""
    for reservation in list(backend.reservations.values()):
        for instance in reservation.instances:
            if instance.state != GONE:
                yield instance
