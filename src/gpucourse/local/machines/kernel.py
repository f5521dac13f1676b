"""The system calls of Linux that turn a process into a machine: namespaces and mounts. Each function raises OSError."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

# linux/sched.h
NEW_USER = 0x10000000
NEW_PIDS = 0x20000000
NEW_MACHINE = 0x00020000 | 0x04000000 | 0x08000000 | 0x40000000  # mounts, host name, IPC, network

# linux/mount.h
READ_ONLY, NO_SETUID, NO_DEVICES = 1, 2, 4
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 4096, 16384, 1 << 18
_DETACH = 2  # umount2: hide the mount now, and remove it when no process uses it

_SET_PARENT_DEATH_SIGNAL = 1  # prctl

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Move this process into new namespaces."""
    _check(_libc.unshare(flags), "unshare")


def enter(handle: int) -> None:
    """Enter the namespace of an open file below /proc/PID/ns."""
    _check(_libc.setns(handle, 0), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount `source` at `target`."""
    result = _libc.mount(
        source.encode(), os.fsencode(target), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None
    )
    _check(result, f"mount {kind or source} at {target}")


def bind(source: str, target: str, *, read_only: bool = False, recursive: bool = False) -> None:
    """Make `source` also visible at `target`, which must exist."""
    mount(source, target, flags=BIND | (RECURSIVE if recursive else 0))
    if read_only:
        mount("none", target, flags=REMOUNT | BIND | READ_ONLY | _read_locked_flags(target))


def find_mounts_below(folder: str) -> list[str]:
    """Return the outermost folders below `folder` that are mount points."""
    lines = Path("/proc/self/mounts").read_bytes().splitlines()
    places = (re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), line.split(b" ")[1]) for line in lines)
    mounts = sorted({place for place in map(os.fsdecode, places) if place.startswith(f"{folder}/") and Path(place).is_dir()})
    return [place for place in mounts if not any(place.startswith(f"{parent}/") for parent in mounts)]


def keep_mounts_private() -> None:
    """Make later mounts visible in this namespace only."""
    mount("none", "/", flags=RECURSIVE | PRIVATE)


def change_root(folder: str) -> None:
    """Make `folder`, a mount point, the new root. The old root is gone afterwards."""
    os.chdir(folder)
    # With the same folder twice, the old root is stacked on the new one, so it needs no folder of its own.
    _check(_libc.pivot_root(b".", b"."), f"pivot_root {folder}")
    _check(_libc.umount2(b".", _DETACH), "umount of the old root")
    os.chdir("/")


def set_name(name: str) -> None:
    """Set the machine's host name."""
    raw = name.encode()
    _check(_libc.sethostname(raw, len(raw)), "sethostname")


def die_with_parent(number: int) -> None:
    """Have the kernel send this signal to this process when its parent process ends."""
    _check(_libc.prctl(_SET_PARENT_DEATH_SIGNAL, number, 0, 0, 0), "prctl")


def _read_locked_flags(target: str) -> int:
    """Return the mount's flags that a plain user must keep when remounting it. statvfs reports them with the same bits."""
    return os.statvfs(target).f_flag & (NO_SETUID | NO_DEVICES | 8 | 1024 | 2048)


def _check(result: int, action: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")
