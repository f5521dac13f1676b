"""Set probes without BPF: each hit of a uprobe writes a record into memory that the kernel shares with this process.

See perf_event_open(2). The probes belong to open files of this process, so none remain when it ends. Probes that are set
through tracefs (uprobe_events) would remain.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import mmap
import os
import platform
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bpf import TracerFailed

TYPE = Path("/sys/bus/event_source/devices/uprobe/type")
ATTRIBUTES = struct.Struct("=IIQQQQQIIQQQQIiQIHH")  # struct perf_event_attr, 112 bytes
TID, TIME, REGS_USER, STACK_USER, IDENTIFIER = 1 << 1, 1 << 2, 1 << 12, 1 << 13, 1 << 16  # what a record contains
DISABLED, CLOEXEC = 1, 8
ENABLE, DISABLE, SET_OUTPUT, GET_ID = 0x2400, 0x2401, 0x2405, 0x80082407  # requests of ioctl
LOST, SAMPLE = 2, 9  # kinds of records
MAX_PAGES, ALL_PAGES = 4096, 1 << 16  # of memory for records: per processor, and in total
HEAD, TAIL = 1024, 1032  # offsets in the first page: how far the kernel has written, and how far this process has read
DRAIN_S = 0.005
# By machine: the system call's number, and the registers (see asm/perf_regs.h) of three arguments, of the result, and of the
# return address; None if that is on top of the stack.
MACHINES: dict[str, tuple[int, tuple[int, int, int], int, int | None]] = {
    "x86_64": (298, (5, 4, 3), 0, None),
    "aarch64": (241, (0, 1, 2), 0, 30),
}


class ProbesRefused(TracerFailed):
    """The kernel does not let this process set probes, or records were lost. The text gives the reason."""


@dataclass(frozen=True)
class Hit:
    """One hit of a probe, at entry or return (`returns`): its time in ns, its thread, and its values."""

    probe: str
    returns: bool
    ns: int
    pid: int
    tid: int
    arguments: tuple[int, int, int]
    result: int  # as a 32-bit error code
    caller: int


def find_reason(library: Path, offset: int) -> str | None:
    """Return the reason why perf cannot set uprobes here, or None if a trial succeeded."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        return f"perf probes need Linux on {' or '.join(MACHINES)}"
    if not TYPE.exists():
        return "this kernel does not offer uprobes through perf"
    try:
        os.close(_open(library, offset, returns=False, processor=_list_processors()[0]))
    except ProbesRefused as error:
        return str(error)
    return None


@contextmanager
def record(library: Path, offsets: dict[str, int]) -> Iterator[list[Hit]]:
    """Yield a list of hits of probes on a library's functions. It is filled, in order of time, when the block ends.

    Functions are given by name and offset in the file. Every process that runs code of that file causes hits. Raises
    ProbesRefused.
    """
    hits: list[Hit] = []
    with ExitStack() as stack:
        rings, files, probes = [], [], {}
        for processor in _list_processors():
            first: int | None = None
            for name, offset in offsets.items():
                for returns in (False, True):
                    file = _open(library, offset, returns=returns, processor=processor)
                    stack.callback(os.close, file)
                    files.append(file)
                    probes[_ask_id(file)] = (name, returns)
                    if first is None:
                        first = file
                        ring = stack.enter_context(mmap.mmap(file, mmap.PAGESIZE + _choose_size()))
                        rings.append(ring)
                    else:
                        fcntl.ioctl(file, SET_OUTPUT, first)
        reader = _Reader(rings)
        for file in files:
            fcntl.ioctl(file, ENABLE, 0)
        try:
            yield hits
        finally:
            for file in files:
                fcntl.ioctl(file, DISABLE, 0)
            reader.end()
        hits += sorted((_read_hit(chunk, probes) for chunk in reader.records), key=lambda hit: hit.ns)


class _Reader:
    """A thread that takes records out of the ring buffers before they are full."""

    def __init__(self, rings: Sequence[mmap.mmap]) -> None:
        self.records: list[bytes] = []
        self._rings, self._lost, self._ended = rings, 0, threading.Event()
        self._thread = threading.Thread(target=self._drain_until_end, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Take the last records. Raises ProbesRefused if records were lost."""
        self._ended.set()
        self._thread.join()
        if self._lost:
            raise ProbesRefused(f"{self._lost:,} records were lost: use fewer tokens")

    def _drain_until_end(self) -> None:
        while not self._ended.wait(DRAIN_S):
            self._drain()
        self._drain()

    def _drain(self) -> None:
        size = _choose_size()
        for ring in self._rings:
            head, tail = struct.unpack_from("=QQ", ring, HEAD)
            start, end = mmap.PAGESIZE + tail % size, mmap.PAGESIZE + head % size
            text = ring[start:end] if end >= start else ring[start:] + ring[mmap.PAGESIZE : end]
            struct.pack_into("=Q", ring, TAIL, head)
            at = 0
            while at < len(text):
                kind, _, length = struct.unpack_from("=IHH", text, at)
                if kind == SAMPLE:
                    self.records.append(text[at + 8 : at + length])
                elif kind == LOST:
                    self._lost += struct.unpack_from("=QQ", text, at + 8)[1]
                at += length


def _read_hit(text: bytes, probes: dict[int, tuple[str, bool]]) -> Hit:
    _, arguments, result, caller = MACHINES[platform.machine()]
    identifier, pid, tid, ns, _abi = struct.unpack_from("=QIIQQ", text)
    registers = sorted({*arguments, result, *([] if caller is None else [caller])})
    values = dict(zip(registers, struct.unpack_from(f"={len(registers)}Q", text, 32), strict=True))
    stack = 32 + 8 * len(registers)
    name, returns = probes[identifier]
    back = values[caller] if caller is not None else struct.unpack_from("=Q", text, stack + 8)[0] if not returns else 0
    first, second, third = (values[register] for register in arguments)
    return Hit(name, returns, ns, pid, tid, (first, second, third), values[result] & 0xFFFFFFFF, back)


@functools.cache
def _choose_size() -> int:
    """Return the bytes for the records of one processor. The number of pages has to be a power of two."""
    pages = min(MAX_PAGES, ALL_PAGES // len(_list_processors()))
    return mmap.PAGESIZE << (max(1, pages).bit_length() - 1)


def _list_processors() -> list[int]:
    parts = Path("/sys/devices/system/cpu/online").read_text(encoding="utf-8").strip().split(",")
    ends = [[int(end) for end in part.split("-")] for part in parts]
    return [number for pair in ends for number in range(pair[0], pair[-1] + 1)]


def _open(library: Path, offset: int, *, returns: bool, processor: int) -> int:
    """Return a disabled probe for all processes on one processor. Raises ProbesRefused."""
    call, arguments, result, caller = MACHINES[platform.machine()]
    mask = sum(1 << register for register in {*arguments, result, *([] if caller is None else [caller])})
    path = ctypes.create_string_buffer(os.fsencode(library))
    sample_type = TID | TIME | REGS_USER | IDENTIFIER | (STACK_USER if caller is None else 0)
    fields = (
        int(TYPE.read_text(encoding="utf-8")), ATTRIBUTES.size, int(returns), 1, sample_type, 0, DISABLED, 0, 0,
        ctypes.addressof(path), offset, 0, mask, 8 if caller is None else 0, 0, 0, 0, 0, 0,
    )  # fmt: skip
    attributes = ctypes.create_string_buffer(ATTRIBUTES.pack(*fields))
    library_of_c = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_long(number) for number in (call, ctypes.addressof(attributes), -1, processor, -1, CLOEXEC)]
    file = int(library_of_c.syscall(*words))
    if file < 0:
        raise ProbesRefused(f"perf_event_open is refused here: {os.strerror(ctypes.get_errno())}")
    return file


def _ask_id(file: int) -> int:
    text = fcntl.ioctl(file, GET_ID, bytes(8))
    return int(struct.unpack("=Q", text)[0])
