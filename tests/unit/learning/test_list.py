from __future__ import annotations

from tests.learning import Learning


def test_list_shows_points(learning: Learning) -> None:
    learning.record()
    listing = learning.types("list").out
    assert "Rivers (1.5 h, 10 of 25 points)" in listing
    assert "10 of 25 points: gpucourse grade." in listing
    learning.put("modules/rubric.yaml", "format: 2\n")
    output = learning.types("list", code=2).out
    assert "1 of 2 exercises passed" in output
    assert "modules/rubric.yaml: format: " in output
