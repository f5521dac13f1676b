"""Workloads whose memory is traced, and the totals of a memory tracer and of the engine's ledger."""

from __future__ import annotations

import fnmatch
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bpf
import stand_in
import tracers

MIB = 1 << 20
MAX_PROMPT = 60_000  # tokens: needs more pages of the cache than fit into cap_mib
MEMORY_CALLS = ("cudaMalloc", "cudaFree")
WEIGHTS = "load_weights"  # kept until the engine ends, so not a leak
PROBE = re.compile(r"\b(?:uprobe|uretprobe|ur?)\s*:\s*([^\s,{/]*|\S*?/\S*?)\s*:\s*([\w*?+.]+)")
OTHER_PROBE = re.compile(
    r"\b(?:k(?:ret)?probe|k(?:ret)?func|f(?:entry|exit)|(?:raw)?tracepoint|profile|software|hardware|usdt)\s*:\w[^\s{/,]*"
)


@dataclass(frozen=True)
class Workload:
    """Requests (prompt tokens, tokens to generate) to an engine with its own weights. `memory` is the GPU's memory in bytes."""

    name: str
    layers: int
    seed: int
    requests: tuple[tuple[int, int], ...]
    memory: int | None = None


@dataclass(frozen=True)
class Totals:
    """Totals of allocations.

    They contain blocks and their bytes, failed calls by error code, and the bytes alive at the end by requesting function.
    """

    allocations: int = 0
    bytes: int = 0
    failed: Mapping[int, int] = field(default_factory=dict)
    alive: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[int, int] = field(default_factory=dict)  # blocks by power: n is 2^n to 2^(n+1) - 1 bytes

    @property
    def alive_bytes(self) -> int:
        """Return the bytes that were allocated and never freed."""
        return sum(self.alive.values())

    @property
    def leak(self) -> str:
        """Return the function with the most live bytes, excluding weights, or an empty string if there is none."""
        return max((site for site in self.alive if site != WEIGHTS), key=lambda site: self.alive[site], default="")


def list_workloads(seed: int, layers: int, tokens: int, cap_mib: int) -> list[Workload]:
    """Return three workloads. Each forgets to free a different one of the engine's three buffers (engine.c: seed % 3)."""
    return [
        Workload("one request", layers, 3 * seed + 1, ((16, tokens),)),
        Workload("three requests", layers, 3 * seed + 2, ((24, tokens), (100, 2 * tokens), (7, tokens))),
        Workload(
            f"{cap_mib} MiB", layers, 3 * seed, ((40, tokens), (MAX_PROMPT, tokens), (64, 2), (MAX_PROMPT, 1)),
            cap_mib * MIB,
        ),
    ]  # fmt: skip


def read_ledger(ledger: Mapping[str, Any]) -> Totals:
    """Return the true totals from the engine's own ledger, which does not record sizes."""
    alive = {name: site["alive_bytes"] for name, site in ledger["sites"].items() if site["alive_bytes"]}
    failures = {2: ledger["failed"]} if ledger["failed"] else {}
    allocations = sum(site["calls"] - site["failed"] for site in ledger["sites"].values())
    return Totals(allocations, ledger["bytes"]["cudaMalloc"], failures, alive)


def read_maps(maps: Mapping[str, Any]) -> Totals:
    """Return the totals in the maps of my_trace.bt.

    Raises ValueError if a key is not a block's address or a value is not a number.
    """
    sizes = {max(0, bucket.get("min", 0)).bit_length() - 1: bucket["count"] for bucket in _take(maps, "@sizes", list)}
    blocks, sites = _take(maps, "@size", dict), _take(maps, "@site", dict)
    alive: Counter[str] = Counter()
    for pointer, size in blocks.items():
        alive[name_site(sites.get(pointer))] += int(size)
    failures = {int(code): int(calls) for code, calls in _take(maps, "@failed", dict).items()}
    return Totals(_take(maps, "@allocations", int), _take(maps, "@bytes", int), failures, dict(alive), sizes)


def _take(maps: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return the map with that name, empty if nothing was stored in it. Raises ValueError if it is of another kind."""
    value = maps.get(name)
    if value is None:
        return kind()
    if isinstance(value, kind):
        return value
    kind_text = {int: "one number", dict: "numbers by key", list: "a histogram: hist(bytes)"}[kind]
    raise ValueError(f"{name} has to be {kind_text}")


def name_site(value: object) -> str:
    """Return the function that asked for a block: the first one outside the CUDA runtime in a name or a stack."""
    frames = [word.partition("+")[0] for word in str(value or "").split()]
    return next((name for name in frames if not name.startswith(("cuda", "0x"))), "unknown")


def read_counters(counters: tracers.Counters) -> Totals:
    """Return the totals in the counters of my_preload.c."""

    def select(kind: str) -> dict[str, int]:
        return {key[1]: number for key, number in counters.items() if key[0] == kind and len(key) == 2 and number}

    return Totals(
        counters.get(("allocations",), 0),
        counters.get(("bytes",), 0),
        {int(code): calls for code, calls in select("failed").items()},
        select("alive"),
        {int(power): blocks for power, blocks in select("size").items()},
    )


def read_calls(counters: Mapping[Any, Any]) -> list[tuple[str, int]]:
    """Return how often each function was called, if the tracer counts calls.

    bpftrace counts them in the map @calls, and the preloaded library in the counters `calls NAME`.
    """
    if isinstance(by_name := counters.get("@calls"), dict):
        return sorted(by_name.items())
    return sorted(
        (key[1], number) for key, number in counters.items() if isinstance(key, tuple) and key[0] == "calls" and number
    )


COMPARED = ("allocations", "bytes", "failed", "alive", "site", "histogram")


def compare(totals: Totals | None, truth: Totals) -> dict[str, Any]:
    """Return the tracer's totals next to the true ones, or None without totals. `_off` is the difference, 0 if they agree."""
    row: dict[str, Any] = {
        "allocations_true": truth.allocations, "bytes_true": truth.bytes, "failed_true": sum(truth.failed.values()),
        "alive_true": truth.alive_bytes, "site_true": truth.leak,
    }  # fmt: skip
    if totals is None:
        return row | dict.fromkeys(("allocations", "bytes", "failed", "alive_bytes", "biggest_site"))
    return row | {
        "allocations": totals.allocations, "bytes": totals.bytes, "failed": sum(totals.failed.values()),
        "alive_bytes": totals.alive_bytes, "biggest_site": totals.leak,
        "allocations_off": abs(totals.allocations - truth.allocations), "bytes_off": abs(totals.bytes - truth.bytes),
        "failed_off": _sum_differences(totals.failed, truth.failed), "alive_off": abs(totals.alive_bytes - truth.alive_bytes),
        "site_off": _sum_differences(totals.alive, truth.alive),
        "histogram_off": abs(sum(totals.sizes.values()) - truth.allocations),
    }  # fmt: skip


def _sum_differences(counts: Mapping[Any, int], truth: Mapping[Any, int]) -> int:
    return sum(abs(counts.get(key, 0) - truth.get(key, 0)) for key in {*counts, *truth})


def name_size(power: int) -> str:
    """Return the lower end of a bucket of sizes, 2^power bytes, such as `64 KiB`."""
    unit = min(power // 10, 3)
    return f"{1 << (power - 10 * unit)} {('B', 'KiB', 'MiB', 'GiB')[unit]}"


def list_other_probes(text: str, exported: Sequence[str]) -> list[str]:
    """Return the functions that a bpftrace program traces besides the memory functions. Comments do not count."""
    names = {match[2] for match in PROBE.finditer(strip_comments(text))}
    matched = {function for name in names for function in fnmatch.filter([*exported, name], name)}
    probes = [match[0] for match in OTHER_PROBE.finditer(strip_comments(text))]
    return sorted(probes + [name for name in matched if not name.startswith(MEMORY_CALLS) and not set(name) & set("*?")])


def strip_comments(text: str) -> str:
    """Return a C or bpftrace program without its comments."""
    return re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda match: match[1] or " ", text, flags=re.DOTALL)


def is_open(file: Path) -> bool:
    """Return whether a tracer is still unchanged, with no line that counts allocations."""
    word = "@allocations" if file.suffix == ".bt" else '"allocations"'
    return word not in strip_comments(file.read_text(encoding="utf-8", errors="replace"))


@contextmanager
def copy_runtime(folder: Path, runtime: Path | None) -> Iterator[Path]:
    """Yield a copy of the engine and its runtime below `folder`.

    A probe on a library fires in every process that maps that file, including processes of other learners, so a copy is needed.
    `runtime` is NVIDIA's runtime on a GPU, or None for the stand-in.
    """
    with tempfile.TemporaryDirectory(prefix=".runtime-", dir=folder) as place:
        copy = Path(shutil.copytree(stand_in.build(is_measured=False), Path(place) / "built"))
        if runtime:
            (copy / stand_in.LIBRARY).unlink()
            shutil.copyfile(runtime, copy / stand_in.LIBRARY)
        yield copy


def follow(
    engine: stand_in.Engine, tracing: AbstractContextManager[dict[Any, Any]], workload: Workload
) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Return the counts of a tracer during a workload, and the engine's ledger.

    The tracer is ready before the engine does anything.
    """
    with tracing as counters:
        engine.load()
        for prompt, tokens in workload.requests:
            engine.request(prompt, tokens)
        ledger = engine.ledger()
    return counters, ledger


def make_engine(workload: Workload, runtime: Path, tracer: stand_in.InsideTracer | None = None) -> stand_in.Engine:
    """Return the engine for a workload, with the runtime in that folder."""
    return stand_in.Engine(
        layers=workload.layers, seed=workload.seed, memory=workload.memory, tracer=tracer, folder=runtime
    )  # fmt: skip


def run_alone(workload: Workload) -> dict[str, Any]:
    """Return the ledger of a workload that is not traced."""
    with make_engine(workload, stand_in.build(is_measured=False)) as engine:
        return follow(engine, nullcontext({}), workload)[1]


def trace_by_bpftrace(
    text: str, workload: Workload, folder: Path, runtime: Path | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the maps of a program after a workload, and the ledger. Raises TracerFailed with bpftrace's message."""
    with copy_runtime(folder, runtime) as copy, make_engine(workload, copy) as engine:
        program = text.replace(":$1:", f":{bpf.quote(engine.library)}:")
        return follow(engine, bpf.run_bpftrace(program, engine.pid), workload)


def trace_by_preload(
    library: Path, workload: Workload, folder: Path, runtime: Path | None = None
) -> tuple[tracers.Counters, dict[str, Any]]:
    """Return a workload's counters and its ledger. The counters are those of a library that is loaded before the runtime."""
    tracer = tracers.Preload(library)
    with copy_runtime(folder, runtime) as built, make_engine(workload, built, tracer) as engine:
        return follow(engine, tracer.count(engine.pid, engine.library), workload)
