"""Workers of pytest-xdist as forks of one process that has imported the tests and whatever they import.

A worker of its own imports all of it again, and in a new clone it compiles all of it, at the same moment as the others do.
execnet, which starts the workers, takes a command in the place of Python: `python -m tests.workers ADDRESS`. That asks the
process behind the address for a fork, hands its own standard streams over, and ends as the fork does.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests import forks

SERVE = "--serve"


@contextmanager
def offer_forks(
    address: Path, chosen: Sequence[str], folder: Path, environment: Mapping[str, str], *, modules: Sequence[str] = ()
) -> Iterator[str]:
    """Have these tests and modules imported, for the block; what execnet is to start in the place of Python. Who asks before
    they are imported waits."""
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(str(address))
        door.listen()
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.workers", SERVE, str(door.fileno()), ",".join(modules), *chosen],
            cwd=folder,
            env=environment,
            pass_fds=[door.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # as pytest itself: Ctrl-C is passed on, once
        )
    with process, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(str(address))
        yield shlex.join((sys.executable, "-m", "tests.workers", str(address)))


def import_tests(chosen: Sequence[str], modules: Sequence[str]) -> None:
    """Import what a pytest with these words collects, then the modules. What cannot be imported, the workers will say."""
    import pytest  # it alone may import plugins: it rewrites their assertions

    class OnlyModules:
        @pytest.hookimpl(tryfirst=True)
        def pytest_pycollect_makeitem(self) -> list[pytest.Item]:
            """Leave the tests of a module to the workers."""
            return []

    words = ("--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "tests.once", *chosen)
    code = pytest.main(list(words), plugins=[OnlyModules()])
    assert code in {pytest.ExitCode.NO_TESTS_COLLECTED, pytest.ExitCode.INTERRUPTED}, "the words were not understood"
    for module in modules:
        with suppress(ImportError):
            importlib.import_module(module)
    gc.freeze()
    gc.disable()  # until a worker has collected the tests: tests/conftest.py


def ask_for_fork(address: str, words: Sequence[str]) -> int:
    """Be a Python with these words, by a fork; its exit code."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(address)
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"words": [sys.executable, *words], "folder": str(Path.cwd()), "env": dict(os.environ), "outputs": []}
        with there:
            socket.send_fds(line, [json.dumps(request).encode()], [there.fileno(), 0, 1, 2])
        with here:
            _pid, code = int(here.recv(64)), int(here.recv(64))
    return code if code >= 0 else 128 - code  # as a shell says it of a signal


if __name__ == "__main__":
    if sys.argv[1] != SERVE:
        sys.exit(ask_for_fork(sys.argv[1], sys.argv[2:]))
    import_tests(sys.argv[4:], sys.argv[3].split(",") if sys.argv[3] else [])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends pytest, and that its workers
    with socket.socket(fileno=int(sys.argv[2])) as entrance:
        asked = forks.serve(entrance)
    if asked is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        forks.take_over(asked)
        forks.run(asked["words"])
