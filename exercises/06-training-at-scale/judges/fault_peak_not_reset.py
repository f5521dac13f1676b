"""Judge a repaired copy: the peak of a stage must not include earlier stages."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("stages that reach {right} bytes are reported with {given}: a peak remains until it is reset")}
PEAKS = {"forward": 70, "backward": 90, "optimizer": 30}  # bytes


class Memory:
    """A device that records the most bytes allocated at a time since the last reset."""

    def __init__(self) -> None:
        self.high = self.now = 0

    def hold(self, size: int) -> None:
        """Allocate that many bytes for a moment."""
        self.high = max(self.high, size)

    def peak(self) -> int:
        """Return the most bytes since the last reset."""
        return self.high

    def reset_peak(self) -> None:
        """Set the peak to 0."""
        self.high = 0

    def allocated(self) -> int:
        """Return 0, because nothing stays allocated."""
        return 0


def judge(part: Part) -> None:
    """Judge three stages, twice. The last stage has the lowest peak."""
    memory = Memory()
    watch = part.call(part.function("Watch"), memory)
    for _ in range(2):
        for stage, size in PEAKS.items():
            part.call(watch.enter, stage)
            memory.hold(size)
    part.call(watch.enter, "end")
    answer = {stage: watch.stages.get(stage) for stage in PEAKS}
    if answer != PEAKS:
        raise part.wrong("still", right=", ".join(map(str, PEAKS.values())), given=", ".join(map(str, answer.values())))
    part.note("each stage has its own peak")
