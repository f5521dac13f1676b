"""The report on a CUDA program that ran on the emulator, as `exercises/shared/emulator/__main__.py` writes it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

State = Literal["ended", "failed", "ended by the emulator", "not compiled", "unsupported"]
Access = Literal["global_load", "global_store", "shared_load", "shared_store"]
ACCESSES: tuple[Access, ...] = ("global_load", "global_store", "shared_load", "shared_store")
SECTOR_BYTES = 32
BANKS, BANK_BYTES = 32, 4


@dataclass(frozen=True, kw_only=True)
class AccessCounts:
    """Counts of memory accesses of one kind by all warps of all launches.

    `requests`: how many requests the warps made.
    `lanes`: how many lanes took part in these requests.
    `bytes`: how many bytes these lanes requested.
    `sectors`: the 32-byte sectors that they touched; shared memory has none.
    `sectors_ideal`: the minimum number of sectors that can hold those bytes.
    `bank_conflicts`: passes over shared memory in addition to the first pass of each request.
    """

    requests: int
    sectors: int
    sectors_ideal: int
    bytes: int
    lanes: int
    bank_conflicts: int

    @property
    def sectors_per_request(self) -> float | None:
        """Return the sectors per request, or None without sectors."""
        return self.sectors / self.requests if self.requests and self.sectors else None

    @property
    def conflicts_per_request(self) -> float | None:
        """Return the bank conflicts per request, or None without requests."""
        return self.bank_conflicts / self.requests if self.requests else None

    @property
    def lanes_per_request(self) -> float | None:
        """Return how many of a warp's 32 lanes took part in a request on average, or None without requests."""
        return self.lanes / self.requests if self.requests else None

    @property
    def used_share(self) -> float | None:
        """Return the requested bytes divided by the bytes that were moved, or None without sectors. It exceeds 1 if several
        lanes request the same bytes.
        """
        return self.bytes / (self.sectors * SECTOR_BYTES) if self.sectors else None


@dataclass(frozen=True, kw_only=True)
class CudaLine:
    """The accesses of one kind that one source line makes. `line` is 0 for accesses that belong to no line of the program's
    files.
    """

    file: str
    line: int
    access: Access
    counts: AccessCounts


@dataclass(frozen=True, kw_only=True)
class CudaRequest:
    """One request of a warp. `size` is the number of bytes that each lane requests. `addresses` has 32 addresses, or null for
    a lane that takes no part.
    """

    file: str
    line: int
    access: Access
    size: int
    addresses: list[int | None]


@dataclass(frozen=True, kw_only=True)
class CudaFault:
    """A fault. `order`: the thread order in which it was first found. `kernel` and `file` may be empty, and `line` may be 0."""

    kernel: str
    kind: str
    count: int
    text: str
    order: int
    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class CudaKernel:
    """All launches of one kernel.

    The counts cover only the `watched_threads` of its `threads`, which were watched to their end, and the first 34 million
    accesses of a larger block. `block` is the size of a block in threads along x, y and z,
    and `shared_bytes` is the shared memory of a block, both in the launch with the most threads. Occupancy depends on these
    two and on registers. `block` is empty if the size is unknown. `atomics` counts the calls of atomic functions on global
    memory, one for each lane. `requests` has one request for each source line, if the run was asked to record them.
    """

    name: str
    launches: int
    threads: int
    watched_threads: int
    block: list[int]
    shared_bytes: int
    atomics: int
    global_load: AccessCounts
    global_store: AccessCounts
    shared_load: AccessCounts
    shared_store: AccessCounts
    lines: list[CudaLine]
    requests: list[CudaRequest]

    @property
    def is_unwatched(self) -> bool:
        """Return whether threads ran and none was watched to its end, so that the kernel may have faults that are not shown."""
        return self.threads > 0 and not self.watched_threads

    def count(self, access: Access) -> AccessCounts:
        """Return the counts of one kind of access."""
        counts: AccessCounts = getattr(self, access)
        return counts


@dataclass(frozen=True, kw_only=True)
class CudaReport:
    """The outcome of one program.

    `message`: why the program failed, or an empty text.
    `notes`: facts about the run that the person should know.
    `code`: the program's exit code.
    `output`: what it printed.
    `orders`: the thread orders in which it ran. The counts and the output are from the first order, unless another one failed.
    """

    state: State
    message: str
    notes: list[str]
    code: int
    output: str
    orders: list[int]
    faults: list[CudaFault]
    kernels: list[CudaKernel]


def count_turns(addresses: list[int]) -> int:
    """Return how many passes over shared memory a request needs if its lanes access at most four bytes each: the largest number
    of different words in any of the 32 banks (CUDA C++ Programming Guide, "Shared Memory").
    """
    words = {address // BANK_BYTES for address in addresses}
    banks = [word % BANKS for word in words]
    return max((banks.count(bank) for bank in set(banks)), default=0)


def widen_rows(request: CudaRequest) -> int | None:
    """Return the number of passes over shared memory that a request would need if each row of the array were padded by one
    element.

    The lanes must walk down a column: the step from lane to lane is constant, and larger than an element. Otherwise, and for
    elements of more than four bytes, return None.
    """
    places = [address for address in request.addresses if address is not None]
    steps = {after - before for before, after in pairwise(places)}
    if not request.access.startswith("shared") or request.size > BANK_BYTES or len(steps) != 1:
        return None
    step = next(iter(steps))
    if step <= request.size:
        return None
    return count_turns([places[0] + lane * (step + request.size) for lane in range(len(places))])
