from __future__ import annotations

from tests.learning import Learning


def test_cancel_refuses_a_run_that_has_ended_or_does_not_exist(learning: Learning) -> None:
    run = learning.record().id
    message = learning.types("cancel", "latest", code=2).err
    assert learning.types("cancel", "--run", "latest", code=2).err == message
    assert f"run {run} has ended already: succeeded" in message
    assert f"gpucourse logs {run}" in message
    assert "there is no run 'otter-9'" in learning.types("cancel", "otter-9", code=2).err


def test_cancel_without_a_name_asks_for_a_run_under_way(learning: Learning) -> None:
    assert "no run is under way" in learning.types("cancel", code=2).err
    run = learning.record("1.2", state="running", collected=False).id
    assert f"under way: {run} (1.2)\n→ gpucourse cancel {run}\n" in learning.types("cancel", code=2).err
