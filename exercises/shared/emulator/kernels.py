"""What the emulator counted and found for each kernel, in numbers and in messages with the learner's own lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

FAULTS = (
    "illegal_address",
    "used_after_free",
    "out_of_bounds",
    "barrier_divergence",
    "races",
    "unwritten_reads",
    "too_many_threads",
)
Find = Callable[[int], str]  # an address in the program as "my_kernels.cu:12"


@dataclass(frozen=True)
class Counts:
    """Accesses of one kind (loads or stores of global or shared memory) by all warps of all launches.

    `requests` of warps, `lanes` that took part in them, `bytes` asked for, `sectors` of 32 bytes touched and `sectors_ideal`,
    the fewest that hold the bytes asked for; `bank_conflicts`: turns of shared memory beyond the first of each request.
    """

    requests: int = 0
    sectors: int = 0
    sectors_ideal: int = 0
    bytes: int = 0
    lanes: int = 0
    bank_conflicts: int = 0

    @property
    def sectors_per_request(self) -> float | None:
        """Sectors per request; None if there was no request."""
        return self.sectors / self.requests if self.requests else None

    @property
    def lanes_per_request(self) -> float | None:
        """Lanes of a warp that took part, of 32; None if there was no request."""
        return self.lanes / self.requests if self.requests else None

    @property
    def conflicts_per_request(self) -> float | None:
        """Turns of shared memory beyond the first, a request; None if there was no request."""
        return self.bank_conflicts / self.requests if self.requests else None


@dataclass(frozen=True)
class Request:
    """One request of a warp: the line it comes from, which memory, whether it writes, bytes of each lane, and the address of
    each of the 32 lanes (None for one that takes no part)."""

    line: str
    shared: bool
    write: bool
    size: int
    addresses: tuple[int | None, ...]


@dataclass(frozen=True)
class Kernel:
    """One kernel, all launches together. Each fault has a number of times, and the first one in words (else None).

    `atomics` counts the calls of atomic functions on global memory, one for each lane; `trace` holds its first requests, where
    the run was asked for them.
    """

    name: str
    launches: int = 0
    threads: int = 0
    atomics: int = 0
    global_load: Counts = field(default_factory=Counts)
    global_store: Counts = field(default_factory=Counts)
    shared_load: Counts = field(default_factory=Counts)
    shared_store: Counts = field(default_factory=Counts)
    races: int = 0
    race: str | None = None
    unwritten_reads: int = 0
    unwritten: str | None = None
    out_of_bounds: int = 0
    where: str | None = None
    used_after_free: int = 0
    freed: str | None = None
    barrier_divergence: int = 0
    diverged: str | None = None
    illegal_address: int = 0
    illegal: str | None = None
    too_many_threads: int = 0
    refused: str | None = None
    trace: tuple[Request, ...] = ()

    def first_fault(self) -> str | None:
        """The worst kind of fault of this kernel in words, with file and line; None if there is none."""
        words = (self.refused, self.illegal, self.freed, self.where, self.diverged, self.race, self.unwritten)
        return next((text for text in words if text), None)


def make_kernel(name: str, told: Mapping[str, Any], find: Find) -> Kernel:
    """A kernel from what the program reported of it; `find` gives the line of an address."""
    counts = {key: Counts(*told[key]) for key in ("global_load", "global_store", "shared_load", "shared_store")}
    words = {key: text for key in FAULTS if key in told and (text := _describe(key, told[key], find))}
    numbers = {key: told[key]["count"] for key in words}
    return Kernel(
        name=name,
        launches=told["launches"],
        threads=told["threads"],
        atomics=told["atomics"],
        trace=tuple(_make_request(item, find) for item in told.get("trace", ())),
        **counts,
        **numbers,
        race=words.get("races"),
        unwritten=words.get("unwritten_reads"),
        where=words.get("out_of_bounds"),
        freed=words.get("used_after_free"),
        diverged=words.get("barrier_divergence"),
        illegal=words.get("illegal_address"),
        refused=words.get("too_many_threads"),
    )


def list_callers(told: Mapping[str, Any]) -> set[int]:
    """The addresses in the program that the faults and the trace of a kernel name."""
    faults = {told[key][who]["caller"] for key in FAULTS if key in told for who in ("first", "other")}
    return (faults | {item["caller"] for item in told.get("trace", ())}) - {0}


def _make_request(item: Mapping[str, Any], find: Find) -> Request:
    return Request(find(item["caller"]), item["shared"], item["write"], item["size"], tuple(item["at"]))


def name_thread(spot: Mapping[str, Any]) -> str:
    """`thread (3,0,0) of block (1,0,0)`."""
    thread, block = (",".join(map(str, spot[key])) for key in ("thread", "block"))
    return f"thread ({thread}) of block ({block})"


def _describe(key: str, fault: Mapping[str, Any], find: Find) -> str:
    first, what, detail = fault["first"], fault["what"], fault["detail"]
    line = find(first["caller"])
    if key == "races":
        return _describe_race(fault, find)
    if key == "barrier_divergence":
        return _describe_divergence(fault, find)
    if key == "unwritten_reads":
        return f"{line}: {name_thread(first)} {first['kind']} {_name_memory(fault)} that no thread of the block has written"
    if key == "too_many_threads":
        return f"a launch of {detail[0]:,} threads: the emulator runs {detail[1]:,} at most, a GPU takes more"
    access = f"{line}: {name_thread(first)} {first['kind']} {detail[1]} bytes"
    if key == "illegal_address":
        words = _ILLEGAL[what].format(kind=first["kind"], bytes=detail[1], variable=fault["variable"])
        return f"{line}: {name_thread(first)} {words}"
    if key == "used_after_free":
        return f"{access} of memory that cudaFree has given back"
    return f"{access} {_describe_distance(fault)}"


_ILLEGAL = {
    "null": "{kind} {bytes} bytes through a null pointer",
    "host": "{kind} {bytes} bytes of the host's memory: a kernel sees only what cudaMalloc gave",
    "variable": "{kind} the host's variable {variable}: give it to the kernel as an argument (nvcc refuses this)",
    "far": "{kind} {bytes} bytes far from everything that cudaMalloc gave",
    "misaligned": "{kind} {bytes} bytes at an address that is no multiple of {bytes} (misaligned address)",
}


def _describe_distance(fault: Mapping[str, Any]) -> str:
    offset, _, size = fault["detail"]
    whole = {
        "shared": f"the {size:,} bytes of dynamic shared memory",
        "variable": f"the {size:,} bytes of {fault['variable']} in shared memory",
        "global": f"an allocation of {size:,} bytes",
    }[fault["what"]]
    if offset < 0:
        return f"{-offset:,} bytes before {whole}"
    return f"at byte {offset:,} of {whole}"


def _name_memory(fault: Mapping[str, Any]) -> str:
    return f"{fault['what']} memory" + (f" ({fault['variable']})" if fault["variable"] else "")


def _describe_race(fault: Mapping[str, Any], find: Find) -> str:
    first, other = fault["first"], fault["other"]
    line, other_line = find(first["caller"]), find(other["caller"])
    them = f"{line}: {name_thread(first)} {first['kind']}"
    if first["block"] != other["block"]:
        order = "blocks run in any order, so only atomic functions may do that"
    else:
        order = "no barrier is between them"
    place = f"the same place of {_name_memory(fault)} that"
    return f"{them} {place} {name_thread(other)} {other['kind']} ({other_line}), and {order}"


def _describe_divergence(fault: Mapping[str, Any], find: Find) -> str:
    first, other, what, detail = fault["first"], fault["other"], fault["what"], fault["detail"]
    if what == "own lane":
        return f"{find(first['caller'])}: {name_thread(first)} calls a function of its warp with a mask that leaves itself out"
    waits = f"{find(first['caller'])}: {name_thread(first)} waits at a barrier"
    if what == "ended":
        return f"{waits} that {detail[0]:,} of the block's {detail[1]:,} threads never reach, such as {name_thread(other)}"
    if what == "two barriers":
        if find(first["caller"]) == find(other["caller"]):  # one barrier of the source, of which g++ made two
            return ""
        return f"{waits}, and {name_thread(other)} at another one ({find(other['caller'])})"
    if what == "warp and block":
        return f"{waits} of its warp, and {name_thread(other)} at __syncthreads() ({find(other['caller'])})"
    there = f"{name_thread(other)}, which waits with another one ({find(other['caller'])})"
    return f"{waits} of its warp, and its mask names {there}"
