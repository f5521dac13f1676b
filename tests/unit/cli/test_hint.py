from __future__ import annotations

import json
from collections.abc import Callable

from tests.unit.cli.conftest import Answer


def test_hint_gives_one_at_a_time_and_the_last_one_stays(type_line: Callable[..., Answer]) -> None:
    def ask(exercise: str) -> tuple[int, int]:
        document = json.loads(type_line("hint", exercise, "--json").out)
        return document["hint"], document["of"]

    _, count = ask("3.2")
    assert [ask("3.2")[0] for _ in range(count + 1)] == [*range(2, count + 1), count, count]
    assert ask("3.1")[0] == 1
