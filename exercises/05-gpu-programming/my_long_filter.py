"""Your second part of 5.8: the scores of a signal that is far longer than its template, from transforms of one short length.

You will learn    what neighbouring pieces share, how long a piece should be, and what this saves
You will produce  a filter for signals of any length, which the run compares with one transform for the whole signal
Try it            gpucourse try 5.8; gpucourse run 5.8 compares it with pieces of several lengths, and with the whole signal
Your part         the bodies of both functions; add helpers as you like
Reading           modules/05-gpu-programming/lesson-10-transforms.md, "Signals that do not end"
"""

from __future__ import annotations

import torch


def choose_points(points: int) -> int:
    """Return the length of a transform for pieces of a very long signal, for a template of `points` points, at least 8.

    Choose it by the number of operations per score, counted as in the lesson: at most a tenth above the smallest that any
    length can have. A length with large prime factors is slow, whatever the count says.
    """
    raise NotImplementedError("choose_points: what does a piece cost, and how many scores does it yield?")


def filter_in_pieces(signals: torch.Tensor, template: torch.Tensor, length: int) -> torch.Tensor:
    """Return the scores that `matched_filter` returns, of shape (signals, samples), from transforms of `length` points each.

    `length` is at least the number of the template's points, and has no relation to the number of samples: a signal may be
    shorter than a piece, or a million times as long. Transform no more pieces than needed, and all of them in one call.
    """
    raise NotImplementedError("filter_in_pieces: which scores of a piece are right, and where does the next piece begin?")
