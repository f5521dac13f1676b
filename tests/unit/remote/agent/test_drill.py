from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpucourse.remote.agent import drill
from gpucourse.remote.agent.drill import read_load_per_core


def test_slow_stops_a_rank_longer_on_a_busy_computer_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actions: list[object] = []
    job: Any = SimpleNamespace(path=lambda *names: str(tmp_path / names[-1]))
    (tmp_path / "rank1.log").write_text("begun\n")

    def sleep(seconds: float) -> None:
        actions.append(seconds)
        if len(actions) == 8:
            (tmp_path / "1.json").touch()

    monkeypatch.setattr("gpucourse.remote.agent.drill.time.sleep", sleep)
    monkeypatch.setattr("gpucourse.remote.agent.drill.os.kill", lambda _pid, number: actions.append(number))
    monkeypatch.setattr(drill, "_measure_crowd", lambda: 3.0)
    drill._slow(job, 1, 4711)
    assert actions == 2 * [signal.SIGSTOP, 3 * drill.STOPPED_S, signal.SIGCONT, drill.RUNNING_S]


def test_read_load_per_core_is_at_least_one() -> None:
    assert read_load_per_core("0.52 0.58 0.59 7/512 4711", 2) == 3.0
    assert read_load_per_core("9.99 0.58 0.59 1/512 4711", 2) == 1.0, "only the process that asks"
    assert read_load_per_core("nonsense", 2) == 1.0
