"""Run an environment in which namespaces are forbidden, as on some computers: `python -m tests.forbidding`, and then `nsenter`
into it.

It is a user namespace, whose owner may forbid further namespaces inside it without changing anything outside. The program
prints `ready`, or why the environment cannot be created, and the environment lasts until the program's standard input ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpucourse.local.machines import kernel
from tests.parts import need

_ALL = (0, 0, (1 << 32) - 1)


@contextmanager
def no_namespaces() -> Iterator[tuple[str, ...]]:
    """Yield the prefix for a command that is refused namespaces. Skip the test if no such environment can be created."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.forbidding"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        line = holder.stdout.readline().strip()
        if line != "ready":
            pytest.skip(f"this kernel does not let the test forbid namespaces: {line}")
        yield (need("nsenter"), f"--user=/proc/{holder.pid}/ns/user", "--preserve-credentials")


def _forbid() -> None:
    parent_pid = os.getpid()
    read_end, write_end = os.pipe()
    helper = os.fork()
    if helper == 0:  # this process stays outside, because only from there can more than its own user ID be mapped
        os.read(read_end, 1)
        root = os.geteuid() == 0
        for kind, number in (("uid", os.getuid()), ("gid", os.getgid())):
            if not root and kind == "gid":
                Path(f"/proc/{parent_pid}/setgroups").write_text("deny", encoding="ascii")
            row = _ALL if root else (number, number, 1)
            Path(f"/proc/{parent_pid}/{kind}_map").write_text(" ".join(map(str, row)), encoding="ascii")
        os._exit(0)
    kernel.unshare(kernel.NEW_USER)
    os.write(write_end, b"\n")
    if os.waitpid(helper, 0)[1]:
        raise OSError("the user IDs cannot be mapped")
    Path("/proc/sys/user/max_net_namespaces").write_text("0", encoding="ascii")


def main() -> None:
    """Make the environment, report it, and wait."""
    try:
        _forbid()
    except OSError as error:
        sys.stdout.write(f"{error}\n")
        return
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
