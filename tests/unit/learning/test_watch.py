"""`watch`: which files it watches, which saves it reports, and keys that act at once."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, cast

from gpucourse.learning import watch
from tests.learning import Learning


def test_wait_for_saves_returns_a_key_before_it_looks_at_files(learning: Learning) -> None:
    keys = iter(["h", "q"])
    events = watch.wait_for_saves(learning.context.stop, (), read_key=lambda _seconds: next(keys))
    assert [next(events), next(events)] == ["h", "q"]


def test_read_stamps_shows_a_save_however_an_editor_saves(learning: Learning, tmp_path: Path) -> None:
    first, second, new = files = (tmp_path / "a.py", tmp_path / "b.py", tmp_path / "answers.yaml")

    def touch() -> None:
        os.utime(first, ns=(1, 1))

    def replace() -> None:
        aside = second.with_suffix(".new")
        aside.write_text("x = 2\n")
        aside.rename(second)

    first.write_text("x = 1\n")
    second.write_text("x = 1\n")
    for save, path in ((touch, first), (replace, second), (lambda: new.write_text("exercise: '1.1'\n"), new)):
        stamps = watch.read_stamps(files)
        save()
        assert next(watch.wait_for_saves(learning.context.stop, files, poll_s=0.01, earlier=stamps)) == (path,)


def test_wait_for_saves_waits_until_a_file_stops_growing(learning: Learning) -> None:
    path = Path("a.py")
    looks = iter([{path: (0, 0, 1)}, {path: (0, 0, 1)}, {path: (1, 10, 1)}, {path: (2, 20, 1)}, {}, {path: (3, 30, 1)}])

    class Looking:
        """An event that is set after the last of the prepared file states."""

        now: ClassVar[dict[Path, watch.Stamp]] = {}

        def wait(self, _seconds: float) -> bool:
            return self.is_set()

        def is_set(self) -> bool:
            return self.now == {path: (9, 9, 9)}

    def look(_files: tuple[Path, ...]) -> dict[Path, watch.Stamp]:
        Looking.now = next(looks, Looking.now)
        return Looking.now

    context = replace(learning.context, stop=cast("threading.Event", Looking()))
    assert next(watch.wait_for_saves(context.stop, (path,), look=look)) == (path,)
    assert Looking.now == {path: (3, 30, 1)}, "not before it stayed as it was"


def test_find_current_exercise_is_the_exercise_of_the_next_step(learning: Learning) -> None:
    assert watch.find_current_exercise(learning.context).id == "1.1"
    learning.record("1.2", {"wet": False})
    assert watch.find_current_exercise(learning.context).id == "1.2"


def test_describe_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    good_file, bad_file = tmp_path / "good.py", tmp_path / "bad.py"
    good_file.write_text("x = 1\n")
    bad_file.write_text("x = 1\nif x\n")
    assert watch.describe_syntax_error((good_file,)) is None
    assert str(watch.describe_syntax_error((good_file, bad_file))).startswith("bad.py:2: ")
    bad_file.write_bytes(b"x = '\x00'\n")
    assert str(watch.describe_syntax_error((bad_file,))).startswith("bad.py")


def test_list_watched_files_updates_a_copy_that_was_reset(learning: Learning) -> None:
    watch.list_watched_files(learning.context, learning.context.catalog.exercise("1.1")[1])
    file = learning.workspace / "exercises/01-rivers/source.py"
    file.write_text("# mine\n")
    learning.types("reset", "1.1")
    learning.put("exercises/01-rivers/source.py", '"""Newer."""\n')
    watch.list_watched_files(learning.open_context(), learning.context.catalog.exercise("1.1")[1])
    assert file.read_text() == '"""Newer."""\n'
