from __future__ import annotations

from tests.learning import Learning, deploy


def test_extend_of_a_lab_on_simulated_nodes_or_without_a_duration_is_refused(learning: Learning) -> None:
    deploy(learning)
    message = learning.types("extend", "1", "2h", code=2).err
    assert "01-local is not a lab on AWS: simulated nodes cost nothing" in " ".join(message.split())
    message = learning.types("extend", "1", "soon", code=2).err
    assert "'soon' is not a duration" in message
    assert "gpucourse extend 1 2h" in message
