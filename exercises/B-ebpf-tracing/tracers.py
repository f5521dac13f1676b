"""Trace a process's calls to the CUDA runtime, with the first tracer that works here. All tracers give the same counts.

`bpftrace` (root): probes on the library's functions; each hit runs a program in the kernel.
`perf` (root): probes that write a record for each call.
`preload` (anybody): a library that is loaded into the process and counts there.
`auto`: the first of these that works. It reports why the earlier ones do not.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import bpf
import perf_probes
import stand_in
import symbols
from bpf import TracerFailed

NAMES = ("bpftrace", "perf", "preload")  # in the order in which `auto` tries them
APIS: dict[str, int | None] = {  # the traced functions, and which argument holds the bytes
    "cudaMalloc": 1, "cudaFree": None, "cudaMemcpy": 2, "cudaMemcpyAsync": 2, "cudaLaunchKernel": None,
    "__cudaLaunchKernel": None, "cudaLaunchKernelExC": None, "cudaGraphLaunch": None, "cudaDeviceSynchronize": None,
}  # fmt: skip
LAUNCHES = {"cudaLaunchKernel": 0, "__cudaLaunchKernel": 0, "cudaLaunchKernelExC": 1}
"""Functions that launch one kernel, and which argument is the kernel. Since CUDA 13 nvcc turns <<<>>> into the second one."""
SLOT = struct.Struct("120sQ")  # as in counters.h
SLOTS = 4096
FIRST_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO of the kernel's proc_ns.h
Counters = dict[tuple[str, ...], int]
"""Numbers by key: ("calls", API), ("failed", API, code), ("bytes", API), ("ns", API, power), ("size", power),
("kernel", name), ("site_calls", function), ("site_bytes", function). A power n means 2^n to 2^(n+1) - 1."""


class NoTracer(Exception):
    """No tracer works here. The text gives the reason for each."""


@dataclass(frozen=True)
class Calls:
    """The calls of one function: how many, how many failed, the bytes of the successful ones, and how long they took.

    `p50_us` and `p99_us` are upper ends of buckets, each twice as wide as the one before: half of the calls took at most
    `p50_us`. The times include the tracer's own time.
    """

    calls: int
    failed: int = 0
    bytes: int | None = None
    p50_us: float | None = None
    p99_us: float | None = None


@dataclass(frozen=True)
class Site:
    """The blocks that one function of the program got from cudaMalloc, and their bytes."""

    calls: int
    bytes: int


@dataclass
class Trace:
    """The counts between the start and the end of a trace. They are empty until the end."""

    tracer: str
    calls: dict[str, Calls] = field(default_factory=dict)
    kernels: dict[str, int] = field(default_factory=dict)
    sites: dict[str, Site] = field(default_factory=dict)
    sizes: list[tuple[int, int, int]] = field(default_factory=list)  # least, most bytes of cudaMalloc's blocks; how many

    @property
    def total(self) -> int:
        """Return the number of all calls. A trace with 0 calls shows nothing."""
        return sum(calls.calls for calls in self.calls.values())

    @property
    def launches(self) -> int:
        """Return the number of kernels that were launched one by one."""
        return sum(self.count(api) for api in LAUNCHES)

    def count(self, api: str) -> int:
        """Return the number of calls of one function."""
        return self.calls[api].calls if api in self.calls else 0


class Tracer(Protocol):
    """A way to count calls. The engine must be started with its `environment` and `descriptors`."""

    name: str
    stacks: bool  # whether it sees more than the function that made a call
    refusals: Sequence[str]
    environment: Mapping[str, str]
    descriptors: Sequence[int]

    def count(self, pid: int, library: Path) -> AbstractContextManager[Counters]:
        """Return counters that are filled when the block ends."""
        ...


class Engine(Protocol):
    """The target of a trace: a process, and the library whose calls are counted."""

    pid: int
    library: Path


def find(name: str, library: Path | None = None) -> Tracer:
    """Return the tracer of that name, or with "auto" the first one that works here. Raises NoTracer.

    `refusals` of the result has the reason for each earlier tracer that does not work. A trial run uses `library`, or the
    stand-in's runtime if it is None.
    """
    refusals: list[str] = []
    for each_name in NAMES if name == "auto" else (name,):
        tracer, reason = _MAKERS[each_name](library or stand_in.build() / stand_in.LIBRARY)
        if tracer is not None:
            tracer.refusals = refusals
            return tracer
        refusals.append(reason)
    raise NoTracer("; ".join(refusals))


@contextmanager
def trace(tracer: Tracer, engine: Engine) -> Iterator[Trace]:
    """Count the calls of an engine while the block runs, and yield the trace that gets the counts.

    The block has to end before the engine does.

    Raises TracerFailed if the tracer does not start or end.
    """
    result = Trace(tracer.name)
    with tracer.count(engine.pid, engine.library) as counters:
        yield result
    _fill(result, counters)


def _fill(result: Trace, counters: Counters) -> None:
    def select(kind: str) -> dict[str, int]:
        return {key[1]: number for key, number in sorted(counters.items()) if key[0] == kind and len(key) == 2 and number}

    for api, calls in select("calls").items():
        failures = sum(number for key, number in counters.items() if key[:2] == ("failed", api))
        times = {int(key[2]): number for key, number in counters.items() if key[:2] == ("ns", api)}
        carried = counters.get(("bytes", api), 0) if APIS[api] is not None else None
        result.calls[api] = Calls(calls, failures, carried, _percentile_us(times, 50), _percentile_us(times, 99))
    result.kernels.update(select("kernel"))
    totals = select("site_bytes")
    result.sites.update({name: Site(calls, totals.get(name, 0)) for name, calls in select("site_calls").items()})
    powers = sorted((int(power), number) for power, number in select("size").items())
    result.sizes.extend((2**power, 2 ** (power + 1) - 1, number) for power, number in powers)


def _percentile_us(times: Mapping[int, int], percent: float) -> float | None:
    """Return the upper end, in microseconds, of the bucket with this percentile of the calls, or None without calls."""
    remaining = sum(times.values()) * percent / 100
    for power, number in sorted(times.items()):
        remaining -= number
        if remaining <= 0:
            return 2 ** (power + 1) / 1e3
    return None


class _Bpftrace:
    name, stacks = "bpftrace", True
    refusals: Sequence[str] = ()
    environment: Mapping[str, str] = {}
    descriptors: Sequence[int] = ()

    @contextmanager
    def count(self, pid: int, library: Path) -> Iterator[Counters]:
        counters: Counters = {}
        with bpf.run_bpftrace(write_program(library, pid=pid), pid) as maps:
            yield counters
        counters.update(_read_counters(maps))


def write_program(library: Path, apis: Sequence[str] | None = None, pid: int | None = None) -> str:
    """Return a bpftrace program that counts calls of a library's functions: `apis`, or the library's functions in APIS.

    With `pid`, it counts only that process. In any PID namespace but the first, the kernel's filter does not know the process
    ids. Then the program counts every process that uses this file.
    """
    exported = symbols.list_functions(library)
    filter_text = f"/pid == {pid}/ " if pid and Path("/proc/self/ns/pid").stat().st_ino == FIRST_PID_NAMESPACE else ""
    return "".join(_write_probes(library, api, APIS[api], filter_text) for api in apis or APIS if api in exported)


def _write_probes(library: Path, api: str, size: int | None, condition: str) -> str:
    place = f"probe:{bpf.quote(library)}:{api}"
    entry = f'@calls["{api}"] = count(); @began_{api}[tid] = nsecs;'
    on_success = ""
    if size is not None:
        entry += f" @want_{api}[tid] = arg{size};"
        on_success = f'@bytes["{api}"] = sum(@want_{api}[tid]);'
    if (kernel := LAUNCHES.get(api)) is not None:
        entry += f" @kernel[usym(arg{kernel})] = count();"
    if api == "cudaMalloc":  # the return address, on top of the stack, is inside the calling function
        entry += ' @from[tid] = *(uint64*)uptr(reg("sp"));'
        on_success += " @size = hist(@want_cudaMalloc[tid]); @site_calls[usym(@from[tid])] = count();"
        on_success += " @site_bytes[usym(@from[tid])] = sum(@want_cudaMalloc[tid]);"
    return (
        f"u{place} {condition}{{ {entry} }}\n"
        f"uret{place} /@began_{api}[tid]/ {{\n"
        f'  @ns["{api}"] = hist(nsecs - @began_{api}[tid]);\n'
        f'  if ((int32)retval == 0) {{ {on_success} }} else {{ @failed["{api}", (int32)retval] = count(); }}\n'
        f"  delete(@began_{api}[tid]);\n}}\n"
    )


def _read_counters(maps: Mapping[str, Any]) -> Counters:
    """Return counters from the maps of a program written by `write_program`."""
    counters: Counters = {}
    for kind in ("calls", "bytes", "failed", "kernel", "site_calls", "site_bytes"):
        for key, number in (maps.get(f"@{kind}") or {}).items():
            counters[(kind, *key.split(","))] = number
    for api, buckets in (maps.get("@ns") or {}).items():
        counters.update({("ns", api, str(_power(bucket))): bucket["count"] for bucket in buckets})
    counters.update({("size", str(_power(bucket))): bucket["count"] for bucket in maps.get("@size") or []})
    return counters


def _power(bucket: Mapping[str, int]) -> int:
    return max(0, bucket.get("min", 0)).bit_length() - 1 if bucket.get("min", 0) > 0 else 0


class _Perf:
    name, stacks = "perf", False
    refusals: Sequence[str] = ()
    environment: Mapping[str, str] = {}
    descriptors: Sequence[int] = ()

    @contextmanager
    def count(self, pid: int, library: Path) -> Iterator[Counters]:
        counters: Counters = {}
        exported = symbols.list_functions(library)
        offsets = {api: symbols.find_offset(library, exported[api]) for api in APIS if api in exported}
        with perf_probes.record(library, offsets) as hits:
            yield counters
        counters.update(_count_hits(pid, [hit for hit in hits if hit.pid == pid]))


def _count_hits(pid: int, hits: Sequence[perf_probes.Hit]) -> Counters:
    """Return counters from the hits of one process. It has to be alive, so that its addresses can be turned into names."""
    counters: Counter[tuple[str, ...]] = Counter()
    entries: dict[tuple[int, str], perf_probes.Hit] = {}
    name = functools.lru_cache(maxsize=None)(functools.partial(symbols.name_address, pid))

    for hit in hits:
        if not hit.returns:
            counters["calls", hit.probe] += 1
            entries[hit.tid, hit.probe] = hit
            if (kernel := LAUNCHES.get(hit.probe)) is not None:
                counters["kernel", name(hit.arguments[kernel])] += 1
        elif entry := entries.pop((hit.tid, hit.probe), None):
            counters["ns", hit.probe, str(max(1, hit.ns - entry.ns).bit_length() - 1)] += 1
            if hit.result:
                counters["failed", hit.probe, str(hit.result)] += 1
            elif (place := APIS[hit.probe]) is not None:
                size = entry.arguments[place]
                counters["bytes", hit.probe] += size
                if hit.probe == "cudaMalloc":
                    counters["size", str(max(1, size).bit_length() - 1)] += 1
                    counters["site_calls", name(entry.caller)] += 1
                    counters["site_bytes", name(entry.caller)] += size
    return dict(counters)


class Preload:
    """Counters that a library keeps inside the process (counters.h), from the start of the process."""

    name, stacks = "preload", False
    refusals: Sequence[str] = ()

    def __init__(self, library: Path) -> None:
        self._file = os.memfd_create("counters")  # in memory; gone when the last process closes it
        os.ftruncate(self._file, SLOTS * SLOT.size)
        self._library = library.resolve()
        descriptor = os.open(library, os.O_RDONLY)
        # By its descriptor: the loader splits LD_PRELOAD at spaces and colons, which a path may have.
        self.environment: Mapping[str, str] = {"LD_PRELOAD": f"/proc/self/fd/{descriptor}", "TRACE_COUNTERS": str(self._file)}
        self.descriptors: Sequence[int] = (self._file, descriptor)

    @contextmanager
    def count(self, pid: int, library: Path) -> Iterator[Counters]:  # noqa: ARG002 (another tracer needs them)
        counters: Counters = {}
        earlier = self._read()
        if f"{self._library}\n" not in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8"):
            raise TracerFailed("the engine was started without this tracer: pass it to Engine(tracer=...)")
        yield counters
        counters.update({key: number - earlier.get(key, 0) for key, number in self._read().items()})

    def _read(self) -> Counters:
        with mmap.mmap(self._file, SLOTS * SLOT.size, access=mmap.ACCESS_READ) as slots:
            return {
                tuple(key.rstrip(b"\0").decode(errors="replace").split(" ")): number
                for key, number in SLOT.iter_unpack(slots)
                if key[0]
            }

    def __del__(self) -> None:
        os.close(self._file)


def _make_bpftrace(library: Path) -> tuple[Tracer | None, str]:
    reason = bpf.find_reason(library)
    return (None, reason) if reason else (_Bpftrace(), "")


def _make_perf(library: Path) -> tuple[Tracer | None, str]:
    reason = perf_probes.find_reason(library, symbols.find_offset(library, symbols.list_functions(library)["cudaMalloc"]))
    return (None, reason) if reason else (_Perf(), "")


def _make_preload(_library: Path) -> tuple[Tracer | None, str]:
    try:
        return Preload(stand_in.build_counter()), ""
    except stand_in.UnsupportedMachine as error:
        return None, str(error)


_MAKERS: dict[str, Callable[[Path], tuple[Tracer | None, str]]] = {
    "bpftrace": _make_bpftrace, "perf": _make_perf, "preload": _make_preload,
}  # fmt: skip
