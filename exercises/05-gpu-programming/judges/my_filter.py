"""Judge my_filter.py of 5.8 by its scores, including the last ones, and by its transforms. No time is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fft import irfft, rfft

from gpucourse.judge import Part, Verdict, Way

SHAPES = ((24, 1000, 124), (9, 211, 20), (3, 64, 64))  # signals, samples, points of the template
TOLERANCE = 1e-5  # of the largest score: float32 reaches 1e-6, and float16 no better than 1e-4
MAX_PADDING = 4  # times the shortest fast length
WAYS = {
    "circular": Way(
        "the last scores of each signal are wrong: a transform that is {wrong:,} points too short wraps around: the beginning "
        "of a signal follows its end. Leave room for samples + points - 1 = {length:,} numbers, the rest zeros",
        ("length = choose_length(samples + points - 1)", "length = samples"),
    ),
    "convolved": Way(
        "those are the scores of the mirrored template: a product of spectra is a convolution, which reverses one of the two. "
        "Take the complex conjugate of the template's spectrum",
        ("rfft(template, length).conj()", "rfft(template, length)"),
    ),
    "wrong-way-round": Way(
        "the places count backwards: conjugate the spectrum of the template, not the spectra of the signals",
        (
            "rfft(template, length).conj()\n    spectra = torch.fft.rfft(signals, length)",
            "rfft(template, length)\n    spectra = torch.fft.rfft(signals, length).conj()",
        ),
    ),
    "shifted": Way(
        "every score is {points_less_one:,} places too late: the first scores belong to a template that begins before the "
        "signal. Score k belongs to a template that begins at sample k",
        (
            "rfft(template, length).conj()\n    spectra = torch.fft.rfft(signals, length)",
            "rfft(template.flip(0), length)\n    spectra = torch.fft.rfft(signals, length)",
        ),
    ),
    "sign-lost": Way(
        "your scores have no sign: an inverted pulse would count as the pulse. Remove abs",
        ("[:, :samples]", "[:, :samples].abs()"),
    ),
    "no-transform": Way(
        "the scores are right, but torch.fft made {made:,} inverse transforms for {signals:,} signals: a direct sum multiplies "
        "{points:,} times for each score, and NumPy does not use a GPU. Use spectra, with torch.fft",
        (
            "    return torch.fft.irfft(spectra * template_spectrum, length)[:, :samples]",
            "    signals = torch.nn.functional.pad(signals, (0, points - 1))\n"
            "    return signals.unfold(1, points, 1) @ template",
        ),
    ),
    "signals-changed": Way(
        "it changed the signals that it was given: the caller still needs them",
        ("    return torch.fft.irfft(", "    signals.mul_(2)\n    return torch.fft.irfft("),
    ),
    "kept-spectrum": Way(
        "called again with another template of as many points, it returned the scores of the first: keep nothing from one "
        "call to the next",
        (
            "template_spectrum = torch.fft.rfft(template, length).conj()",
            "template_spectrum = matched_filter.__dict__.setdefault(length, torch.fft.rfft(template, length).conj())",
        ),
    ),
    "slow-length": Way(
        "a transform has {length:,} points, with the prime factor {factor:,}: an FFT divides a length into small prime "
        "factors, and cannot divide this one. Add zeros up to a length with the factors 2, 3, 5 and 7",
        ("length = choose_length(samples + points - 1)", "length = samples + points - 1"),
    ),
    "far-too-long": Way(
        "a transform has {length:,} points, but {enough:,} are enough: the other zeros only cost time",
        ("length = choose_length(samples + points - 1)", "length = choose_length(16 * samples)"),
    ),
    "one-at-a-time": Way(
        "{calls:,} calls of an FFT for {signals:,} signals: each call has its costs, on a GPU a launch, and one signal does "
        "not keep a device busy. torch.fft transforms the last dimension of a whole tensor in one call",
        (
            "    spectra = torch.fft.rfft(signals, length)",
            "    spectra = torch.stack([torch.fft.rfft(signal, length) for signal in signals])",
        ),
    ),
    "template-again": Way(
        "the template was transformed {times:,} times for {signals:,} signals: its spectrum is the same for all of them",
        ("torch.fft.rfft(template, length).conj()", "torch.fft.rfft(template.expand(len(signals), -1), length).conj()"),
    ),
}


def judge(part: Part) -> None:
    """Judge the scores of three shapes, then the transforms of the largest."""
    from transforms import TransformCounter

    torch.set_num_threads(1)
    matched_filter = part.function("matched_filter")
    counters = {}
    for shape in reversed(SHAPES):  # the smallest first
        counters[shape] = TransformCounter()
        with part.trying(dict(zip(("signals", "samples", "points of the template"), shape, strict=True))):
            _judge_scores(part, matched_filter, shape, counters[shape])
    _judge_again(part, matched_filter, SHAPES[-1])
    counter = counters[SHAPES[0]]
    _judge_transforms(part, counter, SHAPES[0])
    lengths = " and ".join(f"{length:,}" for length in sorted(counter.lengths))
    rows, calls = counter.forward_rows + counter.inverse_rows, counter.forward_calls + counter.inverse_calls
    part.note(f"{rows:,} transforms of {lengths} points in {calls} calls, for {SHAPES[0][0]} signals")


def _judge_scores(part: Part, matched_filter: Callable[..., Any], shape: tuple[int, int, int], counter: Any) -> None:
    from transforms import correlate_directly, score_error

    count, samples, points = shape
    case = f"{count} signals of {samples:,} samples, a template of {points}"
    random = torch.Generator().manual_seed(samples)
    signals, template = torch.randn(count, samples, generator=random), torch.randn(points, generator=random)
    answer = signals.clone()
    with counter:
        scores = part.call(matched_filter, answer, template.clone(), case=case)
    if not torch.equal(answer, signals):
        raise part.wrong("signals-changed", case)
    if not isinstance(scores, torch.Tensor) or scores.shape != (count, samples):
        answer = f"shape {tuple(scores.shape)}" if isinstance(scores, torch.Tensor) else f"a {type(scores).__name__}"
        raise Verdict("failed", "shape", f"it returned {answer}, not a tensor of shape {(count, samples)}", case)
    if scores.is_complex():
        raise Verdict(
            "failed", "complex", "the scores are complex, but scores of real signals and a real template are real", case
        )
    right = correlate_directly(signals, template)
    error = score_error(scores, right)
    if error <= TOLERANCE:
        return
    for way, wrong in _wrong_scores(signals.double(), template.double(), right, counter.lengths):
        if score_error(scores, wrong) <= TOLERANCE:
            missing = samples + points - 1 - min(counter.lengths, default=0)
            values = {"samples": samples, "points_less_one": points - 1, "wrong": missing, "length": samples + points - 1}
            raise part.wrong(way, case, **values)
    row, place = divmod(int((scores.double() - right).abs().nan_to_num(torch.inf).argmax()), samples)
    says = (
        f"score {place:,} of signal {row} is {scores[row, place]:.5g}, but {right[row, place]:.5g} by the sum that defines it"
    )
    raise Verdict("failed", "other", says, case)


def _judge_again(part: Part, matched_filter: Callable[..., Any], shape: tuple[int, int, int]) -> None:
    """Judge the same signals with another template."""
    from transforms import correlate_directly, score_error

    signals, template = torch.ones(shape[0], shape[1]), torch.arange(1.0, shape[2] + 1)
    case = "a second call, with another template"
    scores = part.call(matched_filter, signals, template, case=case)
    if score_error(scores, correlate_directly(signals, template)) > TOLERANCE:
        raise part.wrong("kept-spectrum", case)


def _wrong_scores(
    signals: torch.Tensor, template: torch.Tensor, right: torch.Tensor, lengths: set[int]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield each mistake with the scores that it leads to. For some mistakes they depend on the length of the transforms."""
    samples, whole = signals.shape[1], signals.shape[1] + len(template) - 1
    yield "sign-lost", right.abs()
    for way, multiplied in (("convolved", template), ("shifted", template.flip(0))):
        yield way, irfft(rfft(signals, whole) * rfft(multiplied, whole), whole)[:, :samples]
    for length in lengths:
        spectra, template_spectrum = rfft(signals, length), rfft(template, length)
        if samples <= length < whole:
            yield "circular", irfft(spectra * template_spectrum.conj(), length)[:, :samples]
        yield "wrong-way-round", irfft(spectra.conj() * template_spectrum, length)[:, :samples]


def _judge_transforms(part: Part, counter: Any, shape: tuple[int, int, int]) -> None:
    from transforms import MAX_FACTOR, find_fast_length, largest_prime_factor

    count, samples, points = shape
    if 2 * counter.inverse_rows < count:  # two real signals fit into one complex transform
        raise part.wrong("no-transform", points=points, made=counter.inverse_rows, signals=count)
    for length in sorted(counter.lengths):
        if (factor := largest_prime_factor(length)) > MAX_FACTOR:
            raise part.wrong("slow-length", length=length, factor=factor)
    if (longest := max(counter.lengths)) > MAX_PADDING * (enough := find_fast_length(samples + points - 1)):
        raise part.wrong("far-too-long", length=longest, enough=enough)
    if counter.template_transforms > 1:
        raise part.wrong("template-again", times=counter.template_transforms, signals=count)
    if (calls := counter.forward_calls + counter.inverse_calls) > count // 2:
        raise part.wrong("one-at-a-time", calls=calls, signals=count)
