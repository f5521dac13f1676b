"""Ports for tests: nobody else gets one that is kept."""

from __future__ import annotations

import subprocess
import sys

from tests.ports import take_ports


def test_what_one_process_keeps_no_other_gets() -> None:
    ports = take_ports(3)
    assert ports.stop - ports.start == 3
    program = f"from tests import ports; ports._RANGE = range({ports.start}, {ports.stop}); print(ports.take_port())"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert other.returncode == 1, other.stdout
    assert f"every port from {ports.start} to {ports.stop - 1} is taken" in other.stderr
