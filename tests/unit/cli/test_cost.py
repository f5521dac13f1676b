from __future__ import annotations

from tests.learning import Learning


def test_cost_without_a_cloud_is_zero(learning: Learning) -> None:
    assert "simulated nodes are free" in learning.types("cost").out
    document = learning.types("cost", "--json").document
    assert (document["usd"], document["warnings"]) == ("0.000000", [])
