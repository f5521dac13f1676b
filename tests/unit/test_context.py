from __future__ import annotations

from tests.learning import Learning


def test_with_label_shares_the_judge_that_close_ends(learning: Learning) -> None:
    context = learning.open_context()
    assert context.with_label("1.1").judge is context.judge
    context.close()
