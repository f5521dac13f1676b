"""Judge a repaired copy: it must count only operations that compute."""

from __future__ import annotations

import torch

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{what} counts as {given} operations, but launches {right}")}


def judge(part: Part) -> None:
    """Check that views do not count as launches, but that an operation in place does."""
    counter = part.function("OperationCounter")
    x = torch.ones(2, 6)
    cases = {
        "a view": (lambda: x.view(3, 4), 0),
        "a slice of a permuted view": (lambda: x.permute(1, 0)[1:], 0),
        "a sum": (lambda: x + 1, 1),
        "a view of a sum of a view": (lambda: (x.view(3, 4) + 1).view(12), 1),
        "an addition in place": (lambda: x.add_(1), 1),
    }
    for label, (call, reference) in cases.items():
        with counter() as count:
            part.call(call)
        if count.count != reference:
            raise part.wrong("still", what=label, given=count.count, right=reference)
    part.note("views do not count, but additions in place do")
