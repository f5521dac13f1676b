"""The command `reset`: the file of the course is back, and the file of the learner is kept."""

from __future__ import annotations

from pathlib import Path

from gpucourse.learning import watch
from tests.learning import Learning


def test_reset_puts_one_exercise_back_and_keeps_the_learners_file(learning: Learning) -> None:
    learning.context.paths.exercises.mkdir(parents=True)
    watch.list_watched_files(learning.context, learning.context.catalog.exercise("1.1")[1])
    mine = learning.workspace / "exercises/01-rivers/source.py"
    original = mine.read_text()
    mine.write_text("# mine\n")
    said = learning.types("reset", "1.1", "--json").document
    assert list(said["files"]) == ["01-rivers/source.py"]
    kept = Path(said["files"]["01-rivers/source.py"])
    assert (mine.read_text(), kept.read_text()) == (original, "# mine\n")
    assert "nothing was changed" in learning.types("reset", "1.1").out
    mine.write_text("# mine again\n")
    shown = learning.types("reset", "1.1").out
    assert "yours is now" in shown
    assert str(learning.workspace / "kept") in shown, "however narrow the screen is"
    assert sorted(path.read_text() for path in (learning.workspace / "kept").rglob("*.py")) == ["# mine\n", "# mine again\n"]
    mine.unlink()
    assert "there was none" in learning.types("reset", "1.1").out
    assert mine.read_text() == original
    assert "there is no exercise '1.9'" in learning.types("reset", "1.9", code=2).err
