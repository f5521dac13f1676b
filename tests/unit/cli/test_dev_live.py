from __future__ import annotations

from tests.learning import Learning


def test_dev_live_without_a_terminal_spends_nothing(learning: Learning) -> None:
    said = learning.types("dev", "live", "--max-usd", "3", code=2).err
    assert "this spends money, so a person has to agree at a terminal" in said
    assert "gpucourse dev live --max-usd 3" in said
