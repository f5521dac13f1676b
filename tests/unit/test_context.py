from __future__ import annotations

from gpucourse.model.event import Event, Note
from tests.learning import Learning


def test_guard_turns_a_failure_into_a_warning(learning: Learning) -> None:
    events: list[Event] = []
    context = learning.open_context().watched_by(events.append)
    with context.guard("draw it"):
        raise IndexError("no such row")
    (warning,) = events
    assert isinstance(warning, Note)
    assert warning.text.startswith("could not draw it")
    assert "IndexError" in context.paths.log.read_text()


def test_with_label_shares_the_judge_that_close_ends(learning: Learning) -> None:
    context = learning.open_context()
    assert context.with_label("1.1").judge is context.judge
    context.close()
