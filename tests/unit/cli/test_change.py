from __future__ import annotations

import pytest

from tests.learning import Learning, deploy


@pytest.mark.parametrize("line", ["allow-ip 1", "extend 1 2h", "keep 1 2h", "start 1", "stop 1"])
def test_change_of_a_lab_on_simulated_nodes_is_refused(learning: Learning, line: str) -> None:
    deploy(learning)
    message = learning.types(*line.split(), code=2).err
    assert "01-local is not a lab on AWS: simulated nodes cost nothing" in " ".join(message.split())


@pytest.mark.parametrize("command", ["extend", "keep"])
def test_change_without_a_duration_names_the_whole_command(learning: Learning, command: str) -> None:
    message = learning.types(command, "1", "soon", code=2).err
    assert "'soon' is not a duration" in message
    assert f"gpucourse {command} 1 2h" in message
