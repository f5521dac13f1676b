"""The connection between a driver and its host."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.local import control
from tests.unit.local.scripted_host import host
from tests.waiting import STUCK_S


def test_ask_tells_a_refusal_from_a_stuck_host(folder: Path) -> None:
    with host(folder, {"add": ["error no room\n", None]}):
        with pytest.raises(control.ControlRefused, match="no room"):
            control.ask("add", "{}", timeout_s=STUCK_S)
        with pytest.raises(control.HostStuck):
            control.ask("add", "{}", timeout_s=0.1)


def test_ask_raises_if_no_host_answers(folder: Path) -> None:
    with pytest.raises(control.HostAbsent):
        control.ask("ping", "{}", timeout_s=STUCK_S)
    with host(folder, {"add": ["", 'node {"port": 7}\n']}):
        with pytest.raises(control.HostAbsent, match="closed before the answer"):
            control.ask("add", "{}", timeout_s=STUCK_S)
        assert control.ask("add", "{}", timeout_s=STUCK_S) == ("node", '{"port": 7}')
