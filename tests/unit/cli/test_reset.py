"""The command `reset`: it restores the course's file, and keeps the learner's."""

from __future__ import annotations

from pathlib import Path

from gpucourse.learning import watch
from tests.learning import Learning


def test_reset_restores_one_exercise_and_keeps_the_learners_file(learning: Learning) -> None:
    learning.context.paths.exercises.mkdir(parents=True)
    watch.list_watched_files(learning.context, learning.context.catalog.exercise("1.1")[1])
    file = learning.workspace / "exercises/01-rivers/source.py"
    original = file.read_text()
    file.write_text("# mine\n")
    document = learning.types("reset", "1.1", "--json").document
    assert list(document["files"]) == ["01-rivers/source.py"]
    kept_file = Path(document["files"]["01-rivers/source.py"])
    assert (file.read_text(), kept_file.read_text()) == (original, "# mine\n")
    assert "nothing was changed" in learning.types("reset", "1.1").out
    file.write_text("# mine again\n")
    output = learning.types("reset", "1.1").out
    assert "yours is now" in output
    assert str(learning.workspace / "kept") in output, "however narrow the screen is"
    assert sorted(path.read_text() for path in (learning.workspace / "kept").rglob("*.py")) == ["# mine\n", "# mine again\n"]
    file.unlink()
    assert "there was none" in learning.types("reset", "1.1").out
    assert file.read_text() == original
    assert "there is no exercise '1.9'" in learning.types("reset", "1.9", code=2).err
