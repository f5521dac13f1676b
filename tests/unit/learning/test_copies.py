from __future__ import annotations

from gpucourse.learning.copies import reset
from tests.learning import FOLDER, Learning


def test_reset_restores_a_changed_file_and_keeps_the_learners(learning: Learning) -> None:
    name = f"{FOLDER}/source.py"
    assert set(reset(learning.context, "1.1").files.values()) == {None}, "there was none"
    assert reset(learning.context, "1.1").files == {}
    mine = learning.context.paths.exercises / name
    delivered = mine.read_text()
    for _twice in range(2):
        mine.write_text("mine")
        [(changed, kept)] = reset(learning.context, "1.1").files.items()
        assert (changed, mine.read_text()) == (name, delivered)
        assert kept is not None
        assert kept.read_text() == "mine"
    assert len(list(learning.context.paths.reset_backups.iterdir())) == 2, "both are kept"
