"""Judge a repaired copy: the reported loss must be measured on the held-out text."""

from __future__ import annotations

from types import SimpleNamespace

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the loss is still measured on the text {text}")}


class _Result:
    """A stand-in for the result of any call: each of its methods returns the stand-in again."""

    def __getattr__(self, _name: str) -> _Result:
        return self

    def __call__(self, *_: object, **__: object) -> _Result:
        return self


def judge(part: Part) -> None:
    """Check that `surprise` uses only the held-out text."""
    texts: list[str] = []
    surprise = part.function_alone("surprise", pieces=lambda text, **_: (texts.append(text), text), nn=_Result())
    part.call(surprise, _Result(), SimpleNamespace(held_out="held out", training="training"))
    if texts != ["held out"]:
        raise part.wrong("still", text=" and ".join(texts) or "nothing")
    part.note("the loss is measured on text that the model never saw")
