"""Helpers that all measurements of the course share: the timing loop, percentiles, the record.

Needs only torch, and is uploaded with the exercise's script. Times are in seconds inside; in results, the key names the unit.
"""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import torch

TABLE = "[table of the result]"
"""Before a table that gpucourse shows after the run."""
MAX_WAIT = 10  # times the limit of `limit_time`, for a block that waits


def say(text: str) -> None:
    """Print a line as a whole and at once, because logs of several ranks are read while they are written."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def alone(seconds: float) -> float:
    """Return the estimate unchanged, for a process that measures by itself."""
    return seconds


def here() -> torch.device:
    """Return the device for a script with one process: the first GPU, or the CPU if there is no GPU or GPUCOURSE_BACKEND is
    gloo."""
    on_gpu = torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo"
    return torch.device("cuda", 0) if on_gpu else torch.device("cpu")


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise TimeoutError if the block takes longer. Otherwise, code that never ends would hold up the run until the run's
    limit.

    Other programs make a block slower, so it may take up to `MAX_WAIT` times as long while it has less processor time.
    """
    begin_s, begin_busy_s = time.monotonic(), time.process_time()

    def stop(_number: int, _frame: object) -> None:
        left_s = seconds - (time.process_time() - begin_busy_s)
        if left_s > 0 and time.monotonic() - begin_s < MAX_WAIT * seconds:
            signal.setitimer(signal.ITIMER_REAL, max(left_s, 0.01))
            return
        raise TimeoutError(f"it did not end within {seconds:g} s")

    earlier_handler = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, earlier_handler)


def measure(
    call: Callable[[], object],
    device: torch.device,
    *,
    budget_s: float = 0.3,
    warmup_s: float = 0.03,
    at_least: int = 3,
    threads: int | None = None,
    flush: Callable[[], object] | None = None,
) -> list[float]:
    """Return the seconds of each of many warm calls in one process, for the fields of `spread_ms`.

    Call for `budget_s` seconds, and at least `at_least` times.
    On a GPU, warm up for `warmup_s` seconds. A pair of events encloses each call, and `flush` (see `cache_flush`) runs before
    it.
    On a CPU, PyTorch's own timer warms up, and repeats calls that are too short for the clock. `threads` threads compute, by
    default as many as torch may use.
    """
    if device.type == "cuda":
        seconds = time_calls(call, device, warmup_s=warmup_s, budget_s=budget_s, prepare=flush)
        return seconds + time_each(call, device, max(0, at_least - len(seconds)), flush)
    from torch.utils.benchmark import Timer  # 0.2 s to import, which ranks that time collectives do not need

    timer = Timer("call()", globals={"call": call}, num_threads=threads or torch.get_num_threads())
    timer.timeit(1)
    seconds = list(timer.blocked_autorange(min_run_time=budget_s).times)
    return seconds + [timer.timeit(1).median for _ in range(at_least - len(seconds))]


def cache_flush(device: torch.device, size: int = 256 << 20) -> Callable[[], object] | None:
    """Return a function that empties a GPU's L2 cache by writing more bytes than any L2 cache has; None for a CPU.

    Otherwise, a tensor that fits into the cache would not be read from memory.
    """
    if device.type != "cuda":
        return None
    return torch.empty(size // 4, dtype=torch.int32, device=device).zero_


def time_calls(
    call: Callable[[], object],
    device: torch.device,
    *,
    warmup_s: float = 0.05,
    budget_s: float = 0.5,
    at_most: int = 100,
    agree: Callable[[float], float] = alone,
    prepare: Callable[[], object] | None = None,
) -> list[float]:
    """Return the seconds of each of many warm calls: as many as fit into the budget.

    The number is at least 20 (5 if a call takes long) and at most `at_most`. It follows from a first, warm estimate. Processes
    that call a collective must all make the same number of calls, so `agree` turns this process's estimate into a shared one
    (the largest of all ranks). For `prepare`, see `time_each`.
    """
    time_each(call, device, 2, prepare)  # the first calls set up memory, handles and connections
    estimate = max(agree(min(time_each(call, device, 3, prepare))), 1e-7)
    time_each(call, device, min(at_most, math.ceil(warmup_s / estimate)), prepare)
    at_least = 20 if estimate < 0.1 else 5
    return time_each(call, device, max(at_least, min(at_most, int(budget_s / estimate))), prepare)


def time_each(
    call: Callable[[], object], device: torch.device, count: int, prepare: Callable[[], object] | None = None
) -> list[float]:
    """Return the seconds of each of exactly `count` calls.

    The calls are back to back, or each follows a call of `prepare`, which is not timed. The caller has to drop cold calls. GPU
    work is asynchronous: on a GPU, a pair of events encloses each call, and the clock is read after all of them.
    """
    ready = prepare or _nothing
    if device.type != "cuda":
        seconds = []
        for _ in range(count):
            ready()
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        return seconds
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
    for begin, end in pairs:
        ready()
        begin.record()
        call()
        end.record()
    torch.cuda.synchronize(device)
    return [begin.elapsed_time(end) / 1e3 for begin, end in pairs]


def _nothing() -> None:
    """Do nothing between calls that follow each other at once."""


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return the value below which `percent` percent of the samples are, interpolated between the two nearest samples."""
    return torch.tensor(samples, dtype=torch.float64).quantile(percent / 100).item()


def spread_ms(seconds: Sequence[float]) -> dict[str, float | int]:
    """Return the median, 20th and 80th percentile in milliseconds, and the number of samples."""
    percentiles = {"median_ms": 50, "p20_ms": 20, "p80_ms": 80}
    return {key: round(percentile(seconds, at) * 1e3, 6) for key, at in percentiles.items()} | {"samples": len(seconds)}


def table(rows: Sequence[dict[str, object]], columns: dict[str, str]) -> str:
    """Return rows as aligned text. `columns` maps each key to its title. A value that was not measured shows as a dash."""
    lines = [list(columns.values())] + [[_cell(row.get(key)) for key in columns] for row in rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    text_columns = [all(isinstance(row.get(key), (str, type(None))) for row in rows) for key in columns]
    table_lines = [
        "  ".join(
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(line, widths, text_columns, strict=True)
        )
        for line in lines
    ]
    return "\n".join([table_lines[0], "  ".join("-" * width for width in widths), *table_lines[1:]])


def is_by_hand() -> bool:
    """Return whether a person started the script.

    gpucourse sets GPUCOURSE_OUT, and collects the files that the script writes there.
    """
    return "GPUCOURSE_OUT" not in os.environ


def say_table(rows: Sequence[dict[str, object]], columns: dict[str, str], *, title: str = "") -> None:
    """Print a table that the exercise's manifest also has.

    gpucourse shows the table after the run. During the run, it leaves out the lines from the first line printed here to the
    empty line; the log has them.
    """
    first = "" if is_by_hand() else TABLE
    say("\n".join([first, *([title] if title else []), table(rows, columns), ""]))


def say_end(path: Path, device: torch.device, *details: str) -> None:
    """If a person started the script, print the device and the place of the results. Otherwise, gpucourse shows both."""
    if is_by_hand():
        say(" · ".join([footer(environment(device)), *details]) + f"\nwritten: {path}")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def is_on_one_computer() -> bool:
    """Return whether the ranks share one computer: on simulated nodes, on one node, or if a person started the script."""
    is_one_node = os.environ.get("WORLD_SIZE", "1") == os.environ.get("LOCAL_WORLD_SIZE", "1")
    return is_one_node or os.environ.get("GPUCOURSE_MODE", "local") == "local"


def node_label() -> str:
    """Return the course's name for this node, or the host name if a person started the script."""
    return os.environ.get("GPUCOURSE_NODE") or os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def environment(device: torch.device) -> dict[str, object]:
    """Return the machine and software of a measurement. Values that only a GPU has are None on a CPU."""
    gpu = torch.cuda.get_device_properties(device) if device.type == "cuda" else None
    return {
        "host": node_label(),
        "device": gpu.name if gpu else f"cpu ({platform.machine()})",
        "gpu_memory_bytes": gpu.total_memory if gpu else None,
        "cuda": torch.version.cuda if gpu else None,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if gpu else None,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def footer(facts: dict[str, object]) -> str:
    """Return the environment in one line, for the end of the output."""
    parts = [f"{facts['device']}", f"torch {facts['torch']}", f"Python {facts['python']}"]
    parts += [f"CUDA {facts['cuda']}", f"NCCL {facts['nccl']}"] if facts["cuda"] else []
    return " · ".join([*parts, f"{facts['threads']} of {facts['cores']} cores per rank"])


def write_metrics(schema: str, device: torch.device, *, world_size: int, seed: int, metrics: dict[str, object]) -> Path:
    """Write `metrics.json` into GPUCOURSE_OUT or the current folder, and return its path. Call this on rank 0 only."""
    folder = Path(os.environ.get("GPUCOURSE_OUT") or ".")
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "schema": schema,
        "mode": os.environ.get("GPUCOURSE_MODE", "by hand"),
        "written": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(sys.argv),
        "world_size": world_size,
        "seed": seed,
        **environment(device),
        **metrics,
    }
    handle, aside = tempfile.mkstemp(dir=folder, prefix=".metrics-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(_finite(record), file, indent=2, allow_nan=False)
        file.write("\n")
    Path(aside).chmod(0o644)
    return Path(aside).replace(folder / "metrics.json")


def keep_files(script: str, *names: str) -> None:
    """Copy these files of the script's folder into GPUCOURSE_OUT or the current folder, if that is another folder. The files
    that were measured are then kept with the measurements. Call this on rank 0 only."""
    folder, out = Path(script).resolve().parent, Path(os.environ.get("GPUCOURSE_OUT") or ".").resolve()
    if folder != out:
        for name in names:
            shutil.copyfile(folder / name, out / name)


def _finite(value: object) -> object:
    """Return the value with NaN and infinity as text, because JSON has no such numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value
