"""Write a file of records, read it in several ways, cold or warm, and count the bytes that came from the disk.

A record begins with its number (8 bytes). Its last 4 bytes are the CRC-32 of all bytes before them.
"""

from __future__ import annotations

import mmap
import os
import random
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
Reader = Callable[[Path, int, list[int], int, int], Iterator[Sequence[bytes]]]


def write_shard(path: Path, records: int, size: int, seed: int = 0) -> None:
    """Write that many records of `size` bytes, and wait until they are on disk."""
    filler = random.Random(seed).randbytes(size)
    with path.open("wb") as file:
        for number in range(records):
            body = number.to_bytes(8, "little") + filler[8 : size - 4]
            file.write(body + zlib.crc32(body).to_bytes(4, "little"))
        file.flush()
        os.fsync(file.fileno())


def check_record(record: bytes | memoryview) -> int | None:
    """Return the number of a record, or None if its bytes differ from those that were written."""
    if zlib.crc32(record[:-4]) != int.from_bytes(record[-4:], "little"):
        return None
    return int.from_bytes(record[:8], "little")


def shuffle(records: int, seed: int) -> list[int]:
    """Return the numbers of all records in the random order in which training reads them."""
    order = list(range(records))
    random.Random(seed).shuffle(order)
    return order


@dataclass(frozen=True)
class Delivery:
    """The result of reading the records of an order.

    It counts the records that were delivered, changed on the way, missing, or delivered twice. `in_windows` says whether each
    window was complete before the next began, `full_batches` whether all batches but the last were full.
    """

    records: int
    wrong: int
    missing: int
    twice: int
    in_windows: bool
    full_batches: bool


def check_delivery(batches: Iterator[Sequence[bytes | memoryview]], order: list[int], batch: int, window: int) -> Delivery:
    """Take all batches and compare them with the order. A batch is checked before the next is requested."""
    arrivals: list[int] = []
    wrong_count, sizes = 0, []
    for records in batches:
        numbers = [check_record(record) for record in records]
        wrong_count += numbers.count(None)
        arrivals += [number for number in numbers if number is not None]
        sizes.append(len(records))
    starts = range(0, len(order), window)
    in_windows = all(sorted(arrivals[at : at + window]) == sorted(order[at : at + window]) for at in starts)
    return Delivery(
        records=len(arrivals),
        wrong=wrong_count,
        missing=len(set(order) - set(arrivals)),
        twice=len(arrivals) - len(set(arrivals)),
        in_windows=in_windows,
        full_batches=all(size == batch for size in sizes[:-1]) and all(0 < size <= batch for size in sizes),
    )


def read_one_by_one(path: Path, size: int, order: list[int], batch: int, _window: int) -> Iterator[Sequence[bytes]]:
    """Yield the records in exactly the given order, with a read call for each record."""
    with path.open("rb", buffering=0) as shard:
        for start in range(0, len(order), batch):
            records = []
            for number in order[start : start + batch]:
                shard.seek(number * size)
                records.append(shard.read(size))
            yield records


# --- reading the whole file, each way once --------------------------------------------------------------------------------


def _read_all(path: Path, block: int, flags: int = 0) -> int:
    """Read a file from front to back into one buffer, and return the bytes read.

    The buffer is aligned to a page, because O_DIRECT needs that.
    """
    with mmap.mmap(-1, block) as buffer:
        descriptor = os.open(path, os.O_RDONLY | flags)
        try:
            count = 0
            while byte_count := os.readv(descriptor, [buffer]):
                count += byte_count
            return count
        finally:
            os.close(descriptor)


def _read_mapped(path: Path) -> int:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return sum(len(mapped[at : at + MIB]) for at in range(0, len(mapped), MIB))


def _read_random(path: Path, block: int = 4096, count: int = 4096) -> int:
    chance, blocks = random.Random(0), path.stat().st_size // block
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return sum(len(os.pread(descriptor, block, chance.randrange(blocks) * block)) for _ in range(count))
    finally:
        os.close(descriptor)


def ways() -> dict[str, tuple[Callable[[Path], int], bool]]:
    """Return the function for each way to read a file, and whether the file must not be cached.

    O_DIRECT exists only on Linux.
    """
    direct = getattr(os, "O_DIRECT", 0)
    everywhere: dict[str, tuple[Callable[[Path], int], bool]] = {
        "1 MiB, cold": (lambda path: _read_all(path, MIB), True),
        "1 MiB, warm": (lambda path: _read_all(path, MIB), False),
        "4 KiB, cold": (lambda path: _read_all(path, 4096), True),
        "mmap, cold": (_read_mapped, True),
        "random 4 KiB, cold": (_read_random, True),
    }
    if not direct:
        return everywhere
    return everywhere | {
        "O_DIRECT, 1 MiB": (lambda path: _read_all(path, MIB, direct), True),
        "O_DIRECT, 64 KiB": (lambda path: _read_all(path, 1 << 16, direct), True),
    }


def forget(path: Path) -> None:
    """Remove a file from the page cache. This needs no special privileges, and does not reach the cache of a virtual machine's
    host."""
    if hasattr(os, "posix_fadvise"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def forget_each_window(batches: Iterator[Sequence[bytes]], path: Path, window: int) -> Iterator[Sequence[bytes]]:
    """Yield all batches, and remove the file from the page cache whenever a window is complete."""
    delivered = 0
    for records in batches:
        complete = delivered // window
        delivered += len(records)
        if delivered // window > complete:
            forget(path)
        yield records


@dataclass(frozen=True)
class Cost:
    """A call's seconds, processor seconds, read calls, bytes that these calls returned, and bytes that came from a disk.

    A count is None if it is unknown.
    """

    seconds: float
    cpu_s: float
    calls: int | None
    copied: int | None
    from_disk: int | None


def measure(call: Callable[[], object]) -> Cost:
    """Measure the cost of a call with the computer's clocks and /proc/self/io."""
    io_before, cpu, start = _count_io(), time.process_time(), time.perf_counter()
    call()
    seconds, cpu_s, io_after = time.perf_counter() - start, time.process_time() - cpu, _count_io()
    if io_before is None or io_after is None:
        return Cost(seconds, cpu_s, None, None, None)
    calls, copied, from_disk = (io_after[name] - io_before[name] for name in ("syscr", "rchar", "read_bytes"))
    return Cost(seconds, cpu_s, calls - 1, copied, from_disk)


def _count_io() -> dict[str, int] | None:
    """Return the counters of this process. Reading them is itself a read call, which `measure` subtracts."""
    try:
        text = Path("/proc/self/io").read_bytes().decode()
    except OSError:
        return None
    return {name: int(value) for name, value in (line.split(": ") for line in text.splitlines())}
