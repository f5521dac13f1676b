"""A pytest plugin for tests/whole.py: every test begins only once, even if a process ends in the middle of one.

pytest-xdist runs a test that ended its process in the next process again, and gives up where two of them end. With this plugin
each test leaves a file in the folder NOTES when it begins and another when it has ended. A test that began before has failed,
and a pytest that goes on where another stopped leaves out what has ended.

It says as well what stays in one worker: the tests of a file, since they may share a lab, and all that parse every source. And
SIGTERM ends the tests as Ctrl-C does: every worker brings the fixtures of its test to their ends, however long that takes.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

NOTES = "GPUCOURSE_TESTS_NOTES"
"""Names the folder."""
BEGAN, ENDED, LEFT_OUT, WORKERS = "began", "ended", "left-out", "processes"
PARSING = "tests/test_"
"""How the names of the files begin whose tests parse every source."""


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """File by file, in the order of their names."""

    def _split_scope(self, nodeid: str) -> str:
        return PARSING if nodeid.startswith(PARSING) else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """Hand the tests out so."""
    return Scheduling(config, log)


def prepare(folder: Path) -> int:
    """Make the folder ready for the next pytest; how many tests have begun so far."""
    for name in (BEGAN, ENDED, LEFT_OUT, WORKERS):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for note in (folder / WORKERS).iterdir():
        note.unlink()
    for note in (folder / ENDED).iterdir():
        note.rename(folder / LEFT_OUT / note.name)
    return len(list((folder / BEGAN).iterdir()))


def _find_note(kind: str, item: pytest.Item) -> Path:
    return Path(os.environ[NOTES]) / kind / hashlib.sha256(item.nodeid.encode(errors="replace")).hexdigest()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what an earlier pytest brought to its end."""
    if any((Path(os.environ[NOTES]) / LEFT_OUT).iterdir()):
        items[:] = [item for item in items if not _find_note(LEFT_OUT, item).exists()]


def pytest_configure(config: pytest.Config) -> None:
    """Have SIGTERM end the tests, in whichever process they run; a worker leaves its process id in a note of its name."""
    workerinput = getattr(config, "workerinput", None)
    if workerinput is None:
        signal.signal(signal.SIGTERM, _interrupt)
    else:
        (Path(os.environ[NOTES]) / WORKERS / workerinput["workerid"]).write_text(str(os.getpid()), encoding="ascii")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Forget a worker that has ended."""
    (Path(os.environ[NOTES]) / WORKERS / node.gateway.id).unlink(missing_ok=True)


def _interrupt(number: int, frame: Any) -> None:
    """Pass the signal on to the workers, and wait for them: pytest-xdist by itself would end them after some seconds."""
    told = False
    for note in (Path(os.environ[NOTES]) / WORKERS).iterdir():
        with suppress(ProcessLookupError, ValueError):  # it has ended, or has not written all of it
            os.kill(int(note.read_text(encoding="ascii")), signal.SIGINT)
            told = True
    if not told:
        signal.default_int_handler(number, frame)


def pytest_keyboard_interrupt() -> None:
    """Let no other signal break off the ends of the fixtures, which come now."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Say in a worker that it was asked to stop: else pytest-xdist takes it for broken, and starts another one."""
    if exitstatus == pytest.ExitCode.INTERRUPTED and hasattr(session.config, "workeroutput"):
        session.config.workeroutput |= {"exitstatus": 0, "shouldstop": "the tests were interrupted"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note that the test has ended."""
    result = yield
    _find_note(ENDED, item).touch()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note that the test begins."""
    try:
        _find_note(BEGAN, item).touch(exist_ok=False)
    except FileExistsError:
        pytest.fail("its process ended before it did; not begun again", pytrace=False)
