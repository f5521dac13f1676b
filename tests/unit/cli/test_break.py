from __future__ import annotations

from tests.learning import Learning


def test_break_repaired_is_for_a_fault_in_the_code(learning: Learning) -> None:
    message = learning.types("break", "1.1", "--repaired", "--how", "kill-rank", code=2).err
    assert "--repaired is for a copy with a fault in its code, not for kill-rank" in message
    assert "gpucourse break 1.1 --repaired" in message
