"""The question of 0.5: it is generated, and an answer is judged."""

from __future__ import annotations

import pytest

from tests.unit.exercises.scripts import beside_the_script

FOLDER = "00-local-foundations"


def test_questions_hold_for_the_ranks_of_their_node_alone() -> None:
    challenge = beside_the_script(FOLDER, "challenge")
    questions = [challenge.ask(number) for number in range(1, 200)]
    assert len({str(question) for question in questions}) > 150
    assert challenge.ask(7) == challenge.ask(7)
    for question in questions:
        size = question.group_size
        ranks = [node for node, count in enumerate(question.free_gpus) for _ in range(count // size * size)]
        node_ranks = [rank for rank, node in enumerate(ranks) if node == question.node]
        assert question.holds(node_ranks[0], node_ranks[-1])
        assert not question.holds(node_ranks[0] + 1, node_ranks[-1])
        assert not question.holds(node_ranks[0], node_ranks[-1] + 1)
        first_if_all_count = sum(question.free_gpus[: question.node])
        assert node_ranks[0] < first_if_all_count, "an earlier node has GPUs that no group uses"
        assert max(question.free_gpus) <= 8
    for text in ("24-31", " 24 - 31 ", "24..31", "24 to 31", "24–31"):
        assert challenge.read(text) == (24, 31)
    assert challenge.read("5") == (5, 5)
    verdicts = [challenge.judge(1, answer)["right"] for answer in ("", " ", "12-13", "12-14")]
    assert verdicts == [None, None, True, False], "an answer that was not given is neither right nor wrong"
    for text in ("", "all", "24-", "-24", "24,31", "1-2-3", "0x18-0x1f", "9" * 7):
        with pytest.raises(ValueError, match="not a range of ranks"):
            challenge.read(text)
