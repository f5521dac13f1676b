"""Judges a repaired copy of the clock: the gradient of the inputs must not wait for the weights of the next stage."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the inputs of stage 0 begin at {begin}, but those of stage 1 end at {end}")}


def judge(part: Part) -> None:
    """Judge one micro-batch on two stages whose pieces take 1 each, with the weights of stage 1 long after its inputs."""
    piece, times = part.function("Piece"), part.function("Times")
    orders = [
        [(piece("forward", 0, 0),), (piece("inputs", 0, 0),), (piece("weights", 0, 0),)],
        [(piece("forward", 1, 0),), (piece("inputs", 1, 0),), (piece("weights", 1, 0),)],
    ]
    clock = part.call(part.function("simulate"), orders, 2, times(1, 1, 5).of)
    begin, end = clock.spans[0][1].begin, clock.spans[1][1].end
    if begin != end:
        raise part.wrong("still", begin=begin, end=end)
    part.note("a stage waits for the inputs of the next one alone")
