"""For all tests: Ctrl-C works as in a terminal, also where the tests were started in the background with it ignored."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
