"""Formulas for scaling: speed-up, efficiency, and where the time is lost."""

from __future__ import annotations

from collections.abc import Mapping


def counts(maximum: int) -> list[int]:
    """Return the numbers of workers to measure: 1, 2, 4, 8 ... and `maximum` itself."""
    return sorted({2**power for power in range(maximum.bit_length())} | {maximum})


def speedup(samples_per_s: float, samples_per_s_of_one: float) -> float:
    """Return S: the work done, in multiples of one worker's work. For the same amount of work, this is T1 / Tn."""
    return samples_per_s / samples_per_s_of_one


def efficiency_percent(times: float, workers: int) -> float:
    """Return E = S / n, in percent."""
    return 100 * times / workers


def serial_percent(times: float, workers: int) -> float | None:
    """Return the serial share of the work that this speed-up implies: (1/S - 1/n) / (1 - 1/n).

    Karp and Flatt, "Measuring parallel processor performance", 1990. If the share grows with n, the loss is overhead
    (communication, shared hardware), not a part that stays serial (Amdahl). Return None for one worker, which shows nothing
    about it.
    """
    return 100 * (1 / times - 1 / workers) / (1 - 1 / workers) if workers > 1 else None


def describe_serial_share(slowest: float, fastest: float, workers: int) -> str | None:
    """Return the serial shares for the lowest and the highest speed-up as text, in percent: "8.1 to 12.4".

    A share below 0 does not exist. If the interval reaches below 0, the text names only the upper end. If the whole interval is
    below 0, the text says that noise hides any share. Return None for one worker.
    """
    high, low = serial_percent(slowest, workers), serial_percent(fastest, workers)
    if high is None or low is None:
        return None
    if high <= 0:
        return "within noise"
    return f"{low:.1f} to {high:.1f}" if low > 0 else f"at most {high:.1f}"


def losses_ms(step_ms: float, silent_ms: float, one_ms: float, share: float) -> dict[str, float]:
    """Return the breakdown of a step: its ideal time, what slower computing added, and what communication added.

    `silent_ms` is the same step without communication. `one_ms` is one worker's step with the whole batch, of which each worker
    now has `share`. The three parts add up to the step. A loss below 0 is only noise.
    """
    ideal = one_ms * share
    return {"ideal_ms": ideal, "slower_computing_ms": silent_ms - ideal, "communication_ms": step_ms - silent_ms}


def name_bottleneck(losses: Mapping[str, float], noise_ms: float) -> str:
    """Return the larger of the two losses of a step, or a text that says that none can be named.

    The larger loss, and its lead over the other, must be above the noise. `noise_ms` is the sum of the spreads (p80 - p20) of
    the measurements behind the losses.
    """
    slower, communication = losses["slower_computing_ms"], losses["communication_ms"]
    if max(slower, communication) <= noise_ms or abs(slower - communication) <= noise_ms:
        return "none can be named"
    return "slower computing" if slower > communication else "communication"
