from __future__ import annotations

from gpucourse.learning.copies import reset
from tests.learning import FOLDER, Learning


def test_reset_restores_a_changed_file_and_keeps_the_learners(learning: Learning) -> None:
    name = f"{FOLDER}/source.py"
    assert set(reset(learning.context, "1.1").files.values()) == {None}, "there was none"
    assert reset(learning.context, "1.1").files == {}
    learner_file = learning.context.paths.exercises / name
    delivered = learner_file.read_text()
    for _round in range(2):
        learner_file.write_text("mine")
        [(reset_name, kept_file)] = reset(learning.context, "1.1").files.items()
        assert (reset_name, learner_file.read_text()) == (name, delivered)
        assert kept_file is not None
        assert kept_file.read_text() == "mine"
    assert len(list(learning.context.paths.reset_backups.iterdir())) == 2, "both are kept"
