"""For all tests: Ctrl-C works as in a terminal, even if the tests were started in the background with SIGINT ignored. Python's
garbage collector looks only at objects that are created after the tests were collected: going through all modules and tests
again and again took a third of the time."""

from __future__ import annotations

import gc
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
gc.disable()


def pytest_collection_finish() -> None:
    """Exclude all objects that exist now from garbage collection."""
    gc.freeze()
    gc.enable()
