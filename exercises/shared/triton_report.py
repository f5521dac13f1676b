"""Run a program with Triton kernels in the interpreter, and report each kernel's counts and faults.

    python triton_report.py kernel.py --report FILE [--limit S] [--requests N] [-- ARGS]

The report has the form of `emulator/__main__.py`: `model/cuda.py` describes it. The interpreter has no warps, so a request is
32 lanes of a block: neighbours along the axis with the smallest step between addresses, as Triton's compiler places them if
each thread has one number. A kernel that is launched with `num_warps` counts 32 threads for each warp.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import FrameType
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined

import numpy as np
import torch
from kernel_memory import OWNER, KernelFault, KernelMemory, OutsideTensors, find_place, reason_of
from torch.overrides import TorchFunctionMode
from triton import testing
from triton.backends.compiler import GPUTarget
from triton.runtime import driver, interpreter

LANES, SECTOR_BYTES, USUAL_WARPS, MAX_OUTPUT = 32, 32, 4, 1 << 20
ACCESSES = ("global_load", "global_store", "shared_load", "shared_store")


class EndedEarly(BaseException):
    """The program does not end, or prints too much. No `except Exception` of the program may catch it."""


@dataclass
class Counts:
    """Accesses of one kind: see AccessCounts of `model/cuda.py`."""

    requests: int = 0
    sectors: int = 0
    sectors_ideal: int = 0
    bytes: int = 0
    lanes: int = 0
    bank_conflicts: int = 0

    def add(self, other: Counts) -> None:
        """Add the counts of other accesses."""
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


@dataclass
class Kernel:
    """The launches of one kernel. `lines` has the counts of each line and access, and `requests` one request of each."""

    name: str
    launches: int = 0
    threads: int = 0
    block: int = 0
    atomics: int = 0
    lines: dict[tuple[str, str], Counts] = field(default_factory=dict)
    requests: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return the kernel as the report has it."""
        sums = {access: Counts() for access in ACCESSES}
        for (_, access), counts in self.lines.items():
            sums[access].add(counts)
        return {
            "name": self.name, "launches": self.launches, "threads": self.threads, "watched_threads": self.threads,
            "block": [self.block], "shared_bytes": 0, "atomics": self.atomics,
            **{access: asdict(counts) for access, counts in sums.items()},
            "lines": [
                {**split_place(place), "access": access, "counts": asdict(counts)}
                for (place, access), counts in self.lines.items()
            ],
            "requests": list(self.requests.values()),
        }  # fmt: skip


class KernelReport(KernelMemory):
    """Count the requests of all kernels that run inside a `with`, and collect their faults instead of raising them.

    Only a pointer that leaves its tensor still ends the program.
    """

    files = (*KernelMemory.files, __file__)

    def __init__(self, *, has_requests: bool) -> None:
        super().__init__()
        self.has_requests = has_requests
        self.kernels: dict[str, Kernel] = {}
        self.faults: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._kernel = Kernel("")

    def __enter__(self) -> KernelReport:  # noqa: PYI034 (as in KernelMemory)
        super().__enter__()
        self._patch(interpreter.GridExecutor, "__call__", self._wrap_launch)
        return self

    def report_fault(self, fault: KernelFault) -> None:
        """Collect a fault once for each line."""
        text = str(fault)
        place = text.partition(": ")[0]
        row = {"kernel": self._kernel.name, "kind": fault.kind, "count": 0, "text": text, "order": 0, **split_place(place)}
        self.faults.setdefault((self._kernel.name, fault.kind, place), row)["count"] += 1
        if isinstance(fault, OutsideTensors):
            raise fault

    def _wrap_launch(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def launch(executor: Any, *arguments: Any, **keywords: Any) -> Any:
            name = executor.fn.__name__
            self._kernel = kernel = self.kernels.setdefault(name, Kernel(name))
            kernel.launches += 1
            kernel.block = LANES * keywords.get("num_warps", USUAL_WARPS)
            executor.pre_run_hooks = [*executor.pre_run_hooks, lambda *items, **more: self._learn(executor, *items, **more)]
            return call(executor, *arguments, **keywords)

        return launch

    def _learn(self, executor: Any, *arguments: Any, **keywords: Any) -> None:
        self.tensors.clear()  # another kernel may use the same names
        self._learn_tensors(executor.arg_names, *arguments, **keywords)
        set_grid = self._builder.set_grid_dim

        def count_threads(*sizes: int) -> None:
            self._kernel.threads += int(np.prod(sizes)) * self._kernel.block
            del self._builder.set_grid_dim
            set_grid(*sizes)

        self._builder.set_grid_dim = count_threads

    def _share_out(self, pointers: Any, active: np.ndarray, note: Callable[..., None], does: str) -> None:
        if does == "changes":
            self._kernel.atomics += int(active.sum())
        else:
            self._count_requests(pointers, active, "global_load" if does == "loads" else "global_store")
        super()._share_out(pointers, active, note, does)

    def _count_requests(self, pointers: Any, active: np.ndarray, access: str) -> None:
        owner = pointers.attr.get(OWNER)
        size = owner.itemsize if owner else max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        rows = list_requests(pointers.data, active)
        if not rows.size:
            return
        lanes = (rows >= 0).sum(1)
        counts = Counts(
            requests=len(rows), sectors=int(count_distinct(rows, SECTOR_BYTES).sum()),
            sectors_ideal=int((-(-count_distinct(rows, 1) * size // SECTOR_BYTES)).sum()),
            bytes=int(lanes.sum()) * size, lanes=int(lanes.sum()),
        )  # fmt: skip
        key = (find_place(self.files), access)
        self._kernel.lines.setdefault(key, Counts()).add(counts)
        if self.has_requests and key not in self._kernel.requests:
            addresses = [None if address < 0 else int(address) for address in rows[int(lanes.argmax())]]
            self._kernel.requests[key] = {**split_place(key[0]), "access": access, "size": size, "addresses": addresses}


def list_requests(addresses: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return the addresses of each request in a row of 32, with -1 for a lane that takes no part. No request is empty."""

    def step(axis: int) -> int:
        first, second = np.take(addresses, [0, 1], axis).astype(np.int64).swapaxes(0, axis)
        return abs(int(second.flat[0] - first.flat[0])) or sys.maxsize

    axes = sorted((axis for axis in range(addresses.ndim) if addresses.shape[axis] > 1), key=step, reverse=True)
    order = [*(axis for axis in range(addresses.ndim) if axis not in axes), *axes]
    lanes = np.where(active, addresses.astype(np.int64), -1).transpose(order).ravel()
    rows = np.pad(lanes, (0, -lanes.size % LANES), constant_values=-1).reshape(-1, LANES)
    return rows[(rows >= 0).any(1)]


def count_distinct(rows: np.ndarray, unit: int) -> np.ndarray:
    """Return how many units of `unit` bytes the lanes of each row touch. -1 is no address."""
    units = np.sort(np.where(rows < 0, -1, rows // unit), axis=1)
    return (units[:, :1] >= 0).sum(1) + ((np.diff(units, axis=1) > 0) & (units[:, 1:] >= 0)).sum(1)


def split_place(place: str) -> dict[str, Any]:
    """Return the file and the line of `kernel.py:12`, or an empty file and 0."""
    file, _, line = place.rpartition(":")
    return {"file": file, "line": int(line)} if file and line.isdecimal() else {"file": "", "line": 0}


class OnProcessor(TorchFunctionMode):
    """Create on the processor the tensors that a program requests on a GPU: `device="cuda"`, `x.to("cuda")`, `x.cuda()`."""

    def __init__(self) -> None:
        super().__init__()
        self.has_moved = False

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), kwargs: Any = None) -> Any:
        keywords = {name: self._move(value) for name, value in (kwargs or {}).items()}
        if function is torch.Tensor.cuda:
            self.has_moved = True
            return arguments[0]
        return function(*map(self._move, arguments), **keywords)

    def _move(self, value: Any) -> Any:
        is_gpu = value.type == "cuda" if isinstance(value, torch.device) else isinstance(value, str) and value[:4] == "cuda"
        self.has_moved |= is_gpu
        return torch.device("cpu") if is_gpu else value


class ProcessorDriver:
    """Stand in for Triton's driver of a GPU: programs ask it for the device, and `triton.autotune` for the times."""

    def get_active_torch_device(self) -> torch.device:
        """Return the processor."""
        return torch.device("cpu")

    def get_current_target(self) -> GPUTarget:
        """Return the GPU that a program chooses its settings for: compute capability 8.0, with warps of 32."""
        return GPUTarget("cuda", 80, LANES)

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Return a function that runs nothing. So `triton.autotune` takes the first of its settings."""
        return lambda _call, quantiles: [0.0 for _ in quantiles]


class NoMeasurements:
    """Stand in for the measurements of `triton.testing`, which need a GPU. A function is run once, and its time is NaN."""

    def __init__(self) -> None:
        self.was_used = False

    def install(self) -> None:
        """Replace the functions that measure, and the tables of times that `perf_report` makes of many sizes."""
        testing.do_bench = testing.do_bench_cudagraph = self.run_once
        testing.Mark.run = self.skip

    def run_once(self, function: Callable[[], Any], *_: Any, quantiles: Sequence[float] | None = None, **_options: Any) -> Any:
        """Run the function, and return NaN, or a list of NaN for several quantiles."""
        self.was_used = True
        function()
        times = [math.nan] * len(quantiles or (0.5,))
        return times if len(times) > 1 else times[0]

    def skip(self, *_: Any, **_options: Any) -> None:
        """Run nothing: a table has many sizes, and each takes long in the interpreter."""
        self.was_used = True


class BoundedOutput(io.StringIO):
    """Keep what a program prints. Raises EndedEarly after a megabyte."""

    def write(self, text: str) -> int:
        """Append a text, and return its length."""
        if self.tell() + len(text) > MAX_OUTPUT:
            raise EndedEarly(f"the program printed more than {MAX_OUTPUT >> 20} MB and was ended")
        return super().write(text)


def run_program(source: Path, arguments: Sequence[str], *, limit_s: float, has_requests: bool) -> dict[str, Any]:
    """Run the program and return the report."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise EndedEarly(f"{find_place(KernelReport.files)}: the program did not end within {limit_s:g} s")

    sys.argv, sys.path[0] = [str(source), *arguments], str(source.parent)
    output, on_processor, report = BoundedOutput(), OnProcessor(), KernelReport(has_requests=has_requests)
    state, message, code = "ended", "", 0
    driver.set_active(ProcessorDriver())
    measurements = NoMeasurements()
    measurements.install()
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        with redirect_stdout(output), report, on_processor, np.errstate(over="ignore", invalid="ignore"):
            runpy.run_path(str(source), run_name="__main__")
    except EndedEarly as error:
        state, message = "ended by the emulator", str(error)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        state, message = "failed" if code else "ended", "" if isinstance(error.code, int | None) else str(error.code)
    except SyntaxError as error:
        state, message = "not compiled", f"{Path(error.filename or source).name}:{error.lineno}: {error.msg}"
    except Exception as error:  # noqa: BLE001 (the program may fail in any way; the report says how)
        reason = reason_of(error)
        state, code = "failed", 1
        message = "" if isinstance(reason, OutsideTensors) else explain(reason, source)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    notes = ["tensors for a GPU were made on the processor, where the interpreter runs"] if on_processor.has_moved else []
    notes += ["triton.testing measures nothing without a GPU: each time is nan"] if measurements.was_used else []
    return {
        "state": state, "message": message, "notes": notes, "code": code, "output": output.getvalue(), "orders": [0],
        "faults": list(report.faults.values()), "kernels": [kernel.describe() for kernel in report.kernels.values()],
    }  # fmt: skip


def explain(error: BaseException, source: Path) -> str:
    """Return the error with the last line of the program that led to it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == source.name]
    place = f"{source.name}:{frames[-1].lineno}: " if frames else ""
    return f"{place}{type(error).__name__}: {error}"


def main(words: Sequence[str]) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("source", type=Path)
    parser.add_argument("--report", type=Path, required=True, help="a file for the findings as JSON")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds until the program is ended")
    parser.add_argument("--requests", type=int, default=0, help="more than 0: report a request of each line")
    end = list(words).index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    torch.set_num_threads(1)
    report = run_program(options.source, words[end + 1 :], limit_s=options.limit, has_requests=options.requests > 0)
    options.report.write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
