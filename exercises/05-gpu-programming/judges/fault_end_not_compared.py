"""Judge a repaired copy: it must compare every score, including the last ones."""

from __future__ import annotations

import math

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("score {place} of {samples} is off by half of the largest one, but the error is still {given:.2g}"),
    "never-right": Way("scores that are right have an error of {given:.2g}"),
}
SAMPLES = 100


def judge(part: Part) -> None:
    """Judge with no wrong score, and with a single wrong score at each of several places."""
    import torch

    score_error = part.function_alone("score_error", math=math, torch=torch)
    reference = torch.ones(3, SAMPLES, dtype=torch.float64)
    if (answer := part.call(score_error, reference.float(), reference)) > 1e-6:
        raise part.wrong("never-right", given=answer)
    for place in (0, SAMPLES // 3, SAMPLES // 2, SAMPLES - 2, SAMPLES - 1):
        wrong_rows = reference.float()
        wrong_rows[1, place] += 0.5
        answer = part.call(score_error, wrong_rows, reference)
        if not 0.4 < answer < 0.6:
            raise part.wrong("still", place=place + 1, samples=SAMPLES, given=answer)
    part.note("a wrong score shows wherever it is")
