"""`deploy` on AWS asks before anything is built."""

from __future__ import annotations

import pytest

from tests.system.aws.learner import CloudLearner
from tests.system.aws.terminal import Terminal


@pytest.mark.system
def test_deploy_builds_nothing_without_a_yes(learner: CloudLearner) -> None:
    terminal = Terminal(learner, "deploy", "1", "--target", "aws")
    terminal.shows("[y/N]")
    assert "13 to create" in terminal.screen
    assert learner.list_resources() == []
    terminal.types("n")
    assert terminal.ends() != 0
    assert learner.list_resources() == []
