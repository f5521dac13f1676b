"""The pictures of module 5 about limits: the ring that an FFT sees."""

from __future__ import annotations

from docs.pictures.canvas import Canvas

SAMPLES, PULSE = 24, (1.0, -0.8, 0.6, 1.0, -0.8, 0.6)  # both halves of the pulse are alike, so that half of it scores half


def correlate(signal: list[float], template: tuple[float, ...], *, ring: bool) -> list[float]:
    """The score at each place; behind the end comes the beginning, or nothing."""
    size = len(signal)

    def sample(place: int) -> float:
        return signal[place % size] if ring or place < size else 0.0

    return [sum(value * sample(place + step) for step, value in enumerate(template)) for place in range(size)]


def draw_circle() -> Canvas:
    """Where the template lies at the end of a signal, on a ring and beside zeros, and the scores of both."""
    points, half = len(PULSE), len(PULSE) // 2
    begin = SAMPLES - half
    picture = Canvas(
        "The end of a signal, on a ring and beside zeros",
        f"Two rows of {SAMPLES} samples, each with a template of {points} points at sample {begin}. Above, on a ring of "
        f"{SAMPLES} points, the template covers the last three samples and goes on with the first three: where one half of a "
        "pulse lies at each end, the score there is as high as that of a whole pulse. Below, six zeros follow the samples: the "
        "template covers three samples and three zeros, and the score is half as high. All other scores are equal.",
        368,
    )
    signal = [0.0] * SAMPLES
    for step, value in enumerate(PULSE):
        signal[(begin + step) % SAMPLES] = value  # its first half at the end, its second half at the beginning
        signal[9 + step] = value  # and a whole pulse inside
    scores = {ring: correlate(signal, PULSE, ring=ring) for ring in (True, False)}
    wrong = [place for place in range(SAMPLES) if abs(scores[True][place] - scores[False][place]) > 1e-9]
    if not set(wrong) <= set(range(SAMPLES - points + 1, SAMPLES)):
        raise ValueError("a ring differs from zeros in the last scores only")
    left, cell, top_score = 24, 23, max(scores[True])
    for row, ring in enumerate((True, False)):
        top = 30 + row * 172
        words = f"a ring of {SAMPLES} points" if ring else f"{SAMPLES} samples and {points} zeros"
        picture.text(left, top - 8, words, kind="ink bold")
        covered = {(begin + step) % SAMPLES if ring else begin + step for step in range(points)}
        for place in range(SAMPLES if ring else SAMPLES + points):
            kind = "b" if place in covered else "empty"
            picture.box(left + place * cell, top, cell - 2, 22, kind, str(place) if place < SAMPLES else "0")
        _draw_scores(picture, scores[ring], wrong, (left, cell, top + 122), top_score)
    picture.text(left, 344, "Below the samples: the score at each place, where the template begins there.", kind="ink small")
    picture.text(
        left,
        360,
        "Orange: what the template covers at 21. Red: scores that differ. A whole pulse begins at 9.",
        kind="dim small",
    )
    return picture


def _draw_scores(picture: Canvas, scores: list[float], wrong: list[int], axes: tuple[float, float, float], most: float) -> None:
    left, cell, base = axes
    picture.line(left, base, left + len(scores) * cell, base, "grid")
    for place, score in enumerate(scores):
        high = max(1.0, 86 * max(0.0, score) / most)
        picture.box(left + place * cell + 4, base - high, cell - 10, high, "d" if place in wrong else "a")


PICTURES = {"circle": draw_circle}
