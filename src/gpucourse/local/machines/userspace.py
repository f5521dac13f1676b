"""Enter a user namespace, in which a plain user is root, but only over their own processes and files. This needs newuidmap."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

from gpucourse.local.machines import kernel

_INSIDE = "GPUCOURSE_ROOM_USER"  # set once this program has been started again inside
_MAX_IDS = 65_536


def become_root() -> None:
    """Become root of a user namespace in which the user's own ID stays the same, so that the user still owns their files.

    Do nothing if the user is already root. Raises OSError, which says what is missing.
    """
    if os.geteuid() == 0 or _INSIDE in os.environ:
        return
    maps = {name: _ranges(own_id, f"/etc/sub{name}") for name, own_id in (("uid", os.getuid()), ("gid", os.getgid()))}
    own_pid = os.getpid()
    reader, write_end = os.pipe()
    helper = os.fork()
    if helper == 0:
        os._exit(_map(own_pid, maps, reader))
    kernel.unshare(kernel.NEW_USER)
    os.write(write_end, b"\n")
    if os.waitpid(helper, 0)[1]:
        raise OSError("newuidmap and newgidmap refused; see the outer namespace's log")
    os.setgid(0)
    os.setuid(0)
    os.setgroups([])
    # After execve, the process's memory belongs to the namespace: only then may the user read its environment from outside.
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, _INSIDE: "1"})


def _map(pid: int, maps: dict[str, list[str]], reader: int) -> int:
    os.read(reader, 1)
    return max(subprocess.run([f"new{name}map", str(pid), *ranges], check=False).returncode for name, ranges in maps.items())


def _ranges(own_id: int, file: str) -> list[str]:
    """Return the ranges of IDs as a flat list of (first ID inside, first ID outside, count).

    Root gets the first ID that was lent. The user keeps their own ID, and the remaining lent IDs fill the other ranges.
    """
    start, count = read_lent_ids(file, own_id)
    upper_range = [own_id + 1, start + own_id, count - own_id - 1] if count > own_id + 1 else []
    lower_range = [0, start, min(own_id, count)]
    return [str(number) for number in (*lower_range, own_id, own_id, 1, *upper_range)]


def read_lent_ids(file: str, own_id: int) -> tuple[int, int]:
    """Return the subordinate IDs that the system lends to this user, as the first ID and their count. Raises OSError if it
    lends none."""
    try:
        names = {str(own_id), pwd.getpwuid(os.getuid()).pw_name}
    except KeyError as error:
        raise OSError(
            f"user {os.getuid()} has no account on this computer, and {file} assigns subordinate IDs only to accounts"
        ) from error
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        name, _, numbers = line.partition(":")
        if name in names and numbers.count(":") == 1:
            first, count = map(int, numbers.split(":"))
            return first, min(count, _MAX_IDS)
    raise OSError(f"{file} assigns no subordinate IDs to this user")
