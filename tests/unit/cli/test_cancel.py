from __future__ import annotations

from tests.learning import Learning


def test_cancel_refuses_a_run_that_has_ended_and_one_that_is_not_there(learning: Learning) -> None:
    run = learning.record().id
    message = learning.types("cancel", code=2).err
    assert f"run {run} has ended already: succeeded" in message
    assert f"gpucourse logs {run}" in message
    assert "there is no run 'otter-9'" in learning.types("cancel", "otter-9", code=2).err
