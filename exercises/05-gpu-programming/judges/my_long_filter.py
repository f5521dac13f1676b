"""Judge my_long_filter.py of 5.8: the scores at the seams of the pieces, the transforms, and the chosen length. No time is
measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fft import irfft, rfft

from gpucourse.judge import Part, Verdict, Way

SHAPES = ((1, 45, 20, 64), (3, 50, 20, 64), (2, 333, 8, 45), (2, 30, 9, 9), (2, 1000, 20, 64))  # the last is counted
TEMPLATES = (8, 20, 124, 1000)
TOLERANCE = 1e-5  # of the largest score
MAX_TIMES = 1.1  # the fewest operations per score
MAX_CALLS = 8
WAYS = {
    "no-overlap": Way(
        "the last {wrong} scores of each piece are wrong: there the template reaches beyond the piece and wraps round to its "
        "beginning. How many scores of a piece of {length} points are right, and so where must the next piece begin?",
        ("step = length - template.shape[0] + 1", "step = length"),
    ),
    "one-too-few": Way(
        "one score at the end of each piece is wrong: count the places at which a template of {points} points fits into "
        "{length} points without wrapping around",
        ("step = length - template.shape[0] + 1", "step = min(length, length - template.shape[0] + 2)"),
    ),
    "wrong-end": Way(
        "you keep the last scores of each piece, but with the conjugate the last ones are those that wrap around: score k uses "
        "the samples from k on",
        ("scores[..., :step]", "scores[..., -step:]"),
    ),
    "convolved": Way(
        "those are the scores of the mirrored template in each piece: take the complex conjugate of its spectrum",
        ("rfft(template, length).conj()", "rfft(template, length)"),
    ),
    "end-cut": Way(
        "it returned {answer} scores for each signal of {samples} samples: the last piece is only partly filled, but its "
        "scores count as well",
        ("count = -(-samples // step)", "count = max(1, samples // step)"),
    ),
    "other-length": Way(
        "a transform has {other:,} points, not the {length} that were asked for",
        (
            "    samples = signals.shape[1]\n",
            "    samples = signals.shape[1]\n    length = max(length, samples + template.shape[0] - 1)\n",
        ),
    ),
    "one-at-a-time": Way(
        "right, but {calls} calls of an FFT for {pieces} pieces: each call is a launch on a GPU. Torch has a view of a tensor "
        "as windows, which may overlap",
        (
            "torch.fft.rfft(pieces)",
            "torch.stack([torch.fft.rfft(pieces[:, place]) for place in range(count)], 1)",
        ),
    ),
    "too-many-pieces": Way(
        "right, but {pieces} pieces were transformed, and {enough} are enough: each overlaps more than the template needs",
        ("step = length - template.shape[0] + 1", "step = max(1, length // 4)"),
    ),
    "template-again": Way(
        "right, but the template was transformed {times} times: its spectrum is the same for all pieces",
        ("torch.fft.rfft(template, length).conj()", "torch.fft.rfft(template.expand(count, -1), length).conj()"),
    ),
    "no-transform": Way(
        "the scores are right, but torch.fft made no inverse transforms: a direct sum multiplies {points} times for each score",
        (
            "    scores = torch.fft.irfft(torch.fft.rfft(pieces) * template_spectrum, length)\n",
            "    scores = pieces.unfold(2, template.shape[0], 1) @ template\n",
        ),
    ),
    "signals-changed": Way(
        "it changed the signals that it was given: the caller still needs them",
        ("    samples = signals.shape[1]\n", "    samples = signals.shape[1]\n    signals.mul_(2)\n"),
    ),
    "slow-length": Way(
        "for a template of {points} points it chose {length:,} points, with the prime factor {factor:,}: few operations by the "
        "count, but an FFT cannot divide this length",
        ("range(points + 1, 40 * points) if has_small_factors(length)", "(6 * points + 5,)"),
    ),
    "too-short": Way(
        "for a template of {points} points it chose {length:,} points, {times:.2f} times the fewest operations per score: most "
        "of what such a piece computes wraps around and is thrown away. Longer pieces yield more scores",
        ("range(points + 1, 40 * points)", "range(2 * points, 9 * points // 4)"),
    ),
    "too-long": Way(
        "for a template of {points} points it chose {length:,} points, {times:.2f} times the fewest operations per score: "
        "little is thrown away, but log2 of the length grows. Compute the count for several lengths",
        ("range(points + 1, 40 * points)", "range(64 * points, 80 * points)"),
    ),
}


def judge(part: Part) -> None:
    """Judge the chosen lengths, then the scores of several shapes, then the transforms of the largest shape."""
    torch.set_num_threads(1)
    choose_points, filter_in_pieces = part.function("choose_points"), part.function("filter_in_pieces")
    chosen = [(points, _judge_choice(part, choose_points, points)) for points in TEMPLATES]
    for shape in SHAPES:
        with part.trying(dict(zip(("signals", "samples", "points of the template", "length"), shape, strict=True))):
            counter = _judge_scores(part, filter_in_pieces, shape)
            _judge_transforms(part, counter, shape)
    lengths = ", ".join(f"{length:,} for a template of {points:,}" for points, length in chosen)
    part.note(f"you choose transforms of {lengths} points")


def _judge_choice(part: Part, choose_points: Callable[..., Any], points: int) -> int:
    """Return the length that the part chooses for a template. Raises Verdict if another one has far fewer operations."""
    from transforms import MAX_FACTOR, fewest_operations, largest_prime_factor, operations_per_score

    case = f"a template of {points:,} points"
    length = part.call(choose_points, points, case=case)
    if not isinstance(length, int) or isinstance(length, bool) or length < points:
        raise Verdict("failed", "no-length", f"it returned {length!r}, not a whole number of at least {points} points", case)
    times = operations_per_score(length, points) / fewest_operations(points)
    if times > MAX_TIMES:
        too_short = length < 4 * points
        raise part.wrong("too-short" if too_short else "too-long", case, points=points, length=length, times=times)
    if (factor := largest_prime_factor(length)) > MAX_FACTOR:
        raise part.wrong("slow-length", case, points=points, length=length, factor=factor)
    return length


def _judge_scores(part: Part, filter_in_pieces: Callable[..., Any], shape: tuple[int, int, int, int]) -> Any:
    """Return the count of the transforms. Raises Verdict if the scores of a shape are wrong."""
    from transforms import TransformCounter, correlate_directly, score_error

    count, samples, points, length = shape
    case = f"{count} signals of {samples:,} samples, a template of {points}, transforms of {length}"
    random = torch.Generator().manual_seed(samples)
    signals, template = torch.randn(count, samples, generator=random), torch.randn(points, generator=random)
    argument, counter = signals.clone(), TransformCounter()
    with counter:
        scores = part.call(filter_in_pieces, argument, template.clone(), length, case=case)
    if not torch.equal(argument, signals):
        raise part.wrong("signals-changed", case)
    if isinstance(scores, torch.Tensor) and scores.dim() == 2 and len(scores) == count and 0 < scores.shape[1] < samples:
        raise part.wrong("end-cut", case, answer=scores.shape[1], samples=samples)
    if not isinstance(scores, torch.Tensor) or scores.shape != (count, samples) or scores.is_complex():
        answer = f"shape {tuple(scores.shape)}" if isinstance(scores, torch.Tensor) else f"a {type(scores).__name__}"
        raise Verdict("failed", "shape", f"it returned {answer}, not real scores of shape {(count, samples)}", case)
    right = correlate_directly(signals, template)
    if score_error(scores, right) <= TOLERANCE:
        return counter
    for way, wrong in _wrong_scores(signals.double(), template.double(), length):
        if score_error(wrong, right) > TOLERANCE and score_error(scores, wrong) <= TOLERANCE:
            raise part.wrong(way, case, wrong=points - 1, length=length, points=points)
    row, place = divmod(int((scores.double() - right).abs().nan_to_num(torch.inf).argmax()), samples)
    says = f"score {place:,} of signal {row} is {scores[row, place]:.5g}, but {right[row, place]:.5g} by the direct sum"
    raise Verdict("failed", "other", says, case)


def _wrong_scores(signals: torch.Tensor, template: torch.Tensor, length: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield each mistake with the scores that it leads to."""
    step = length - len(template) + 1
    spectrum = rfft(template, length)

    def filter_with(step: int, spectrum: torch.Tensor, *, keeps_last: bool = False) -> torch.Tensor:
        count = -(-signals.shape[1] // step)
        padded = torch.nn.functional.pad(signals, (0, (count - 1) * step + length - signals.shape[1]))
        scores = irfft(rfft(padded.unfold(1, length, step)) * spectrum, length)
        scores = scores[..., -step:] if keeps_last else scores[..., :step]
        return scores.reshape(len(signals), -1)[:, : signals.shape[1]]

    yield "no-overlap", filter_with(length, spectrum.conj())
    yield "one-too-few", filter_with(min(length, step + 1), spectrum.conj())
    yield "wrong-end", filter_with(step, spectrum.conj(), keeps_last=True)
    yield "convolved", filter_with(step, spectrum)


def _judge_transforms(part: Part, counter: Any, shape: tuple[int, int, int, int]) -> None:
    count, samples, points, length = shape
    case = f"{count} signals of {samples:,} samples, a template of {points}, transforms of {length}"
    pieces = count * -(-samples // (length - points + 1))
    if 2 * counter.inverse_rows < pieces:  # two real pieces fit into one complex transform
        raise part.wrong("no-transform", case, points=points)
    if others := sorted(counter.lengths - {length}):
        raise part.wrong("other-length", case, other=others[-1], length=length)
    if counter.inverse_rows > pieces + count:
        raise part.wrong("too-many-pieces", case, pieces=counter.inverse_rows, enough=pieces)
    if (calls := counter.forward_calls + counter.inverse_calls) > MAX_CALLS:
        raise part.wrong("one-at-a-time", case, calls=calls, pieces=pieces)
    if counter.template_transforms > 1:
        raise part.wrong("template-again", case, times=counter.template_transforms)
