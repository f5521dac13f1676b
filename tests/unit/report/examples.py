"""A report with a table, a picture and words that look like mark-up."""

from __future__ import annotations

from gpucourse.model.report import Chapter, Grid, Picture, Report, Saying

HOSTILE = "<script>alert('a & b')</script> | * [x](http://evil)"


def report(*chapters: Chapter, mode: str = "aws", missing: tuple[str, ...] = ()) -> Report:
    return Report(
        title="GPU benchmark report", author="Ada Example", made="2031-05-04", mode=mode, subjects=("Tesla T4", "NVIDIA L4"),
        chapters=chapters, missing=missing,
    )  # fmt: skip


def chapter(picture: Picture, *, words: str = "Take the L4.\n\nIt is cheaper a token.") -> Chapter:
    grid = Grid(
        title="Achieved", columns=("measured on", "TFLOP/s"), rows=(("Tesla T4", "41.2"), (HOSTILE, "–")),
        numeric=(False, True), note="– not measured",
    )  # fmt: skip
    saying = Saying(title="Recommendation", question="recommendation", text=words)
    return Chapter(
        id="compute", title="Compute & memory", text="What each GPU reaches.", grids=(grid,), pictures=(picture,),
        sayings=(saying,), missing=("a good run of 4.3. `gpucourse run 4.3`",), sources=("20310504-101112-otter",),
    )  # fmt: skip
