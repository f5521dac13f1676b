"""`reset` puts back and keeps; `watch` sees what was saved."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, cast

import pytest

from gpucourse.context import Context
from gpucourse.learning import watch
from tests.learning import Learning
from tests.waiting import STUCK_S, until


def test_reset_puts_one_exercise_back_and_keeps_the_learners(learning: Learning) -> None:
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


def test_after_a_reset_the_copy_follows_the_course_again(learning: Learning) -> None:
    watch.list_watched_files(learning.context, learning.context.catalog.exercise("1.1")[1])
    mine = learning.workspace / "exercises/01-rivers/source.py"
    mine.write_text("# mine\n")
    learning.types("reset", "1.1")
    learning.put("exercises/01-rivers/source.py", '"""Newer."""\n')
    watch.list_watched_files(learning.open_context(), learning.context.catalog.exercise("1.1")[1])
    assert mine.read_text() == '"""Newer."""\n'


class Watching:
    """What `watch` told, in a thread."""

    def __init__(self, context: Context, files: tuple[Path, ...]) -> None:
        self.context, self.told = context, list[list[str]]()
        known = watch.read_stamps(files)  # now, and not when the thread gets a processor
        self._thread = threading.Thread(target=self._watch, args=(files, known))
        self._thread.start()

    def _watch(self, files: tuple[Path, ...], known: dict[Path, watch.Stamp]) -> None:
        for changed in watch.wait_for_saves(self.context, files, poll_s=0.02, known=known):
            assert not isinstance(changed, str), "nobody presses keys"
            self.told.append([path.name for path in changed])

    def until(self, condition: Callable[[], bool]) -> None:
        until(condition, "what was saved is told")

    def end(self) -> None:
        self.context.stop.set()
        self._thread.join(STUCK_S)
        assert not self._thread.is_alive()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, ...]:
    paths = (tmp_path / "a.py", tmp_path / "b.py", tmp_path / "answers.yaml")
    for path in paths[:2]:
        path.write_text("x = 1\n")
    return paths


def test_what_was_saved_is_told_however_an_editor_saves(learning: Learning, files: tuple[Path, ...]) -> None:
    watching = Watching(learning.context, files)
    try:
        os.utime(files[0], ns=(1, 1))
        watching.until(lambda: watching.told == [["a.py"]])
        aside = files[1].with_suffix(".new")
        aside.write_text("x = 2\n")
        files[1].unlink()
        aside.rename(files[1])
        watching.until(lambda: watching.told[1:] == [["b.py"]])
        files[2].write_text("exercise: '1.1'\n")
        watching.until(lambda: watching.told[2:] == [["answers.yaml"]])
        assert len(watching.told) == 3
    finally:
        watching.end()


def test_a_file_that_grows_is_told_once_it_is_whole(learning: Learning) -> None:
    path = Path("a.py")
    looks = iter([{path: (0, 0, 1)}, {path: (0, 0, 1)}, {path: (1, 10, 1)}, {path: (2, 20, 1)}, {}, {path: (3, 30, 1)}])

    class Looking:
        """As often as there is something to see."""

        now: ClassVar[dict[Path, watch.Stamp]] = {}

        def wait(self, _seconds: float) -> bool:
            return self.is_set()

        def is_set(self) -> bool:
            return self.now == {path: (9, 9, 9)}

    def look(_files: tuple[Path, ...]) -> dict[Path, watch.Stamp]:
        Looking.now = next(looks, Looking.now)
        return Looking.now

    learning.context.stop = cast("threading.Event", Looking())
    assert next(watch.wait_for_saves(learning.context, (path,), look=look)) == (path,)
    assert Looking.now == {path: (3, 30, 1)}, "not before it stayed as it was"


def test_the_exercise_that_the_learner_is_at(learning: Learning) -> None:
    assert watch.current(learning.context).id == "1.1"
    learning.record("1.2")
    assert watch.current(learning.context).id == "1.2"


def test_python_that_is_none_is_told_with_its_line(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("x = 1\n")
    bad.write_text("x = 1\nif x\n")
    assert watch.wrong_syntax((good,)) is None
    assert str(watch.wrong_syntax((good, bad))).startswith("bad.py:2: ")
    bad.write_bytes(b"x = '\x00'\n")
    assert str(watch.wrong_syntax((bad,))).startswith("bad.py")


def test_watch_without_a_lab_or_with_a_wrong_parameter(learning: Learning) -> None:
    assert "the lab of module 1 is not deployed" in learning.types("watch", "1.1", code=3).err
    assert "there is no exercise '9.9'" in learning.types("watch", "9.9", code=2).err
