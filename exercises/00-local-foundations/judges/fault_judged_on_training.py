"""Judges a repaired copy: the reported loss must be measured on the held-out text."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the loss is still measured on the text {text}")}


class _Loss:
    def item(self) -> float:
        return 1.0


def judge(part: Part) -> None:
    """Check that `surprise` uses only the held-out text."""
    texts: list[str] = []
    surprise = part.function_alone(
        "surprise",
        pieces=lambda text, **_: (texts.append(text), text),
        loss_of=lambda *_: _Loss(),
        held_out="held out",
        training="training",
    )
    part.call(surprise, None)
    if texts != ["held out"]:
        raise part.wrong("still", text=" and ".join(texts) or "nothing")
    part.note("the loss is measured on text that the model never saw")
