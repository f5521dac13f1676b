"""Record every cloud region in which this workspace builds a lab, before anything is created there. A region is never removed.

An unnecessary search for leftovers in a region costs a second. A missing search costs money.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucourse.workspace.files import read_record, write_record
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths


@dataclass(kw_only=True)
class Regions:
    """The content of the file: the regions in the order of their first use."""

    version: int = 1
    regions: list[str] = field(default_factory=list)


def read_used_regions(paths: WorkspacePaths) -> tuple[str, ...]:
    """Return the recorded regions, in the order of their first use."""
    record = read_record(paths.regions, Regions)
    return tuple(record.regions) if record else ()


def note(paths: WorkspacePaths, region: str) -> None:
    """Record a region. If this raises StorageError, nothing may be built there."""
    with hold_lock(paths.lock("regions"), "regions", wait_s=10.0):
        regions = read_used_regions(paths)
        if region not in regions:
            write_record(paths.regions, Regions(regions=[*regions, region]))
