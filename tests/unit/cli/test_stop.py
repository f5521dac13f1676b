from __future__ import annotations

from tests.learning import Learning, deploy


def test_stop_of_a_lab_on_simulated_nodes_is_refused(learning: Learning) -> None:
    deploy(learning)
    message = learning.types("stop", "1", code=2).err
    assert "01-local is not a lab on AWS: simulated nodes cost nothing" in " ".join(message.split())
