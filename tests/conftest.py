"""For all tests: Ctrl-C works as in a terminal, also where the tests were started in the background with it ignored. And Python
looks for circles only among what comes after the collection: looking through all modules and tests again and again took a third
of the time."""

from __future__ import annotations

import gc
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
gc.disable()


def pytest_collection_finish() -> None:
    """Keep what is there for good."""
    gc.freeze()
    gc.enable()
