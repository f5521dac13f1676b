"""A GPU for tests: torch reports an H100, and the processor computes everything that is put on it.

sitecustomize.py imports this file after torch. It shows which branch a script takes on a GPU, at the speed of a processor.
FAKE_GPU_NAME sets the GPU's name, FAKE_GPU_BYTES the size of its memory, and FAKE_GPU_COUNT the number of GPUs.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

NAME, CAPABILITY = os.environ.get("FAKE_GPU_NAME", "NVIDIA H100 80GB HBM3"), (9, 0)
TOTAL = int(os.environ.get("FAKE_GPU_BYTES", "0")) or 80 << 30
CPU = torch.device("cpu")
LARGE = 1 << 26  # numbers
DO_NOTHING = ("init", "set_device", "synchronize", "empty_cache", "reset_peak_memory_stats", "set_per_process_memory_fraction")


class OnTheProcessor(TorchFunctionMode):  # type: ignore[misc]  # mypy does not look into torch
    """Replaces the GPU by the processor in every call that names a GPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.zero_ and args[0].numel() >= LARGE:  # the flush of a cache that is not there
            return args[0]
        if func is torch.device:  # a script asks its device what it is
            return func(*args, **(kwargs or {}))
        if func is torch.Tensor.pin_memory:  # no driver is there to lock it
            return args[0]
        if func is torch.ops.aten._scaled_dot_product_flash_attention:
            func = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        options = {name: value for name, value in (kwargs or {}).items() if name != "pin_memory"}  # a driver would lock it
        return func(*tree_map(_to_processor, args), **tree_map(_to_processor, options))


class Event:
    """An event at the moment at which it is recorded, when the processor has finished everything before it."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0 if enable_timing else float("nan")

    def record(self, *_: object) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        return 1e3 * (end.at - self.at)

    def synchronize(self) -> None:
        """Return at once, because nothing is in progress."""


class Stream:
    """A stream of a device that finishes each operation before the next is queued."""

    def wait_event(self, event: Event) -> None:
        """Return at once, because everything before the event has finished."""

    def wait_stream(self, stream: Stream) -> None:
        """Return at once, because everything in the other stream has finished."""


class CUDAGraph:
    """A graph of the operations that the recorder of exercise 5.5, a file next to the script, records."""

    def __init__(self) -> None:
        self.recorder: Any = None

    def replay(self) -> None:
        self.recorder.replay()


def _capture(graph: CUDAGraph) -> Any:
    graph.recorder = importlib.import_module("graphs").Recorder()
    return graph.recorder


class Plans(list[SimpleNamespace]):
    """The FFT plans that each device keeps: there are none, and their limit can be set."""

    def __init__(self) -> None:
        super().__init__([SimpleNamespace(size=0, max_size=4096, clear=lambda: None)])


def _to_processor(value: object) -> object:
    if isinstance(value, torch.device) and value.type == "cuda":
        return CPU
    return CPU if isinstance(value, str) and value.partition(":")[0] == "cuda" else value


def _properties(_device: object = None) -> SimpleNamespace:
    return SimpleNamespace(
        name=NAME, total_memory=TOTAL, multi_processor_count=132, major=9, minor=0, clock_rate=1_980_000,
        memory_clock_rate=2_619_000, memory_bus_width=5120, L2_cache_size=50 << 20, is_integrated=0,
    )  # fmt: skip


def _by_gloo(backend: str, *, device_id: object = None, **options: Any) -> None:
    _init(backend.replace("nccl", "gloo"), **options)


def _group_by_gloo(ranks: Any = None, *, backend: str | None = None, **options: Any) -> Any:
    return _new_group(ranks, backend=backend and backend.replace("nccl", "gloo"), **options)


def _mesh_of_processors(group: Any, _device_type: str, **options: Any) -> Any:
    return _mesh(group, "cpu", **options)


def _on_no_device(self: DistributedDataParallel, module: Any, device_ids: Any = None, **options: Any) -> None:
    _ddp(self, module, **options)


def _in_every_thread(self: threading.Thread) -> None:
    with OnTheProcessor():
        _run(self)


def _nothing() -> Callable[..., None]:
    """Return a new function that does nothing. Each call returns another one, because torch keeps its functions in a table that
    contains each of them only once.
    """
    return lambda *_, **__: None


_init, _new_group, _ddp = dist.init_process_group, dist.new_group, DistributedDataParallel.__init__
_run, _mesh = threading.Thread.run, dist.DeviceMesh.from_group
for _name, _value in {
    "is_available": lambda: True,
    "device_count": lambda: int(os.environ.get("FAKE_GPU_COUNT", "1")),
    "current_device": lambda: 0,
    "get_device_name": lambda _device=None: NAME,
    "get_device_capability": lambda _device=None: CAPABILITY,
    "get_device_properties": _properties,
    "is_bf16_supported": lambda including_emulation=True: True,
    "mem_get_info": lambda _device=None: (TOTAL // 2, TOTAL),
    "memory_allocated": lambda _device=None: 0,
    "max_memory_allocated": lambda _device=None: 1 << 20,
    "memory_reserved": lambda _device=None: 0,
    "_sleep": lambda cycles: time.sleep(cycles / 1.8e9),
    "Event": Event,
    "Stream": Stream,
    "CUDAGraph": CUDAGraph,
    "graph": _capture,
    "current_stream": lambda _device=None: Stream(),
    "stream": lambda _stream: contextlib.nullcontext(),
    **{name: _nothing() for name in DO_NOTHING},
}.items():  # fmt: skip
    setattr(torch.cuda, _name, _value)
torch.cuda.memory._record_memory_history = _nothing()
torch.cuda.memory._dump_snapshot = lambda path: Path(path).write_bytes(b"")
torch.cuda.nccl.version = lambda: (2, 28, 9)
torch.version.cuda = "13.0"
torch.backends.cuda.cufft_plan_cache = Plans()
dist.init_process_group = _by_gloo
dist.new_group = _group_by_gloo
dist.DeviceMesh.from_group = _mesh_of_processors
DistributedDataParallel.__init__ = _on_no_device
threading.Thread.run = _in_every_thread  # type: ignore[method-assign]
OnTheProcessor().__enter__()
