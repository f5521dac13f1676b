"""Drawing is made ready once, aside, when a rank has said something."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from gpucourse.actions.warm import warming
from gpucourse.figures import plots
from gpucourse.model.event import Event, LogBytes, Note


def test_everything_is_told_on_and_the_first_words_of_a_rank_make_ready_once(monkeypatch: pytest.MonkeyPatch) -> None:
    readied: list[str] = []
    monkeypatch.setattr(plots, "make_ready", lambda: readied.append(threading.current_thread().name))
    told: list[Event] = []
    watch = warming(told.append)
    quiet: list[Event] = [Note(text="here"), LogBytes(node="node0", rank=None, data=b"torchrun starts\n")]
    words: list[Event] = [LogBytes(node="node0", rank=rank, data=b"hello\n") for rank in (0, 1, 0)]
    for event in quiet:
        watch(event)
    assert not _ended()
    assert readied == []
    for event in words:
        watch(event)
    _ended()
    assert told == [*quiet, *words]
    assert readied == ["warm"]


def test_after_it_a_picture_imports_nothing_more() -> None:
    ask = "import sys; from gpucourse.figures.plots import make_ready; make_ready(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert {f"matplotlib.{part}" for part in ("figure", "backends.backend_agg", "backends.backend_svg")} <= {
        *done.stdout.split()
    }


def _ended() -> list[threading.Thread]:
    """The threads that make ready, once they are done."""
    found = [thread for thread in threading.enumerate() if thread.name == "warm"]
    for thread in found:
        thread.join(30)
    return found
