"""Judge a repaired copy: it must time the single file from before the slices are gathered until it is on disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gpucourse.judge import Part, Verdict, Way

WAYS = {"still": Way("gathering took {gather:g} s and writing {write:g} s, but the time of the single file is {given:g} s")}
REPAIRS = (
    (
        """    tensors = gather_whole(training)
    start = time.perf_counter()
""",
        """    before_gather = start = time.perf_counter()
    tensors = gather_whole(training)
""",
    ),
)
GATHER_S, WRITE_S = 5.0, 2.0


class Clock:
    """A clock that only moves when something takes time."""

    def __init__(self) -> None:
        self.now = 100.0

    def gather(self, _training: object) -> list[int]:
        """Gather the slices of all ranks."""
        self.now += GATHER_S
        return []

    def save(self, _tensors: object, file: Any) -> None:
        """Write the slices."""
        self.now += WRITE_S
        file.write(b"all")


def judge(part: Part) -> None:
    """Check that the time of the single file includes both gathering and writing."""
    clock = Clock()
    names: dict[str, Any] = {
        "time": SimpleNamespace(perf_counter=lambda: clock.now),
        "gather_whole": clock.gather,
        "torch": SimpleNamespace(save=clock.save),
        "os": SimpleNamespace(fsync=lambda _file: None),
        "Path": Path,
        "Training": None,
    }
    mesh = SimpleNamespace(get_local_rank=lambda: 0)
    training = SimpleNamespace(mesh=mesh)
    with tempfile.TemporaryDirectory(prefix="gpucourse-judge-") as folder:
        answer = part.call(part.function_alone("save_one_file", **names), training, Path(folder) / "one-file.pt")
    if not isinstance(answer, dict) or "seconds" not in answer:
        raise Verdict("failed", "no-seconds", "save_one_file no longer returns how many seconds the single file took")
    if abs(answer["seconds"] - GATHER_S - WRITE_S) > 1e-6:
        raise part.wrong("still", gather=GATHER_S, write=WRITE_S, given=answer["seconds"])
    part.note("the time of the single file includes gathering and writing")
