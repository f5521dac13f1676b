from __future__ import annotations

from gpucourse.learning.hint import next_hint
from tests.learning import Learning


def test_next_hint_of_each_exercise_goes_on_by_itself(learning: Learning) -> None:
    assert [next_hint(learning.context, "1.1")[1] for _ in range(4)] == [1, 2, 3, 3]
    assert next_hint(learning.open_context(), "1.2")[1] == 1
