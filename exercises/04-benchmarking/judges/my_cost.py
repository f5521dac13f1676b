"""Judges my_cost.py of 4.4 with the prices of real instances and services with different loads."""

from __future__ import annotations

from collections.abc import Callable

from gpucourse.judge import Case, Part, Way

WAYS = {
    "utilisation-upside-down": Way(
        "in your result a token became cheaper at {utilisation:g}% utilisation: idle hours are paid for and produce nothing, "
        "so it costs {times:.3g} times as much as at full load",
        ("utilisation_percent / 100", "100 / utilisation_percent"),
    ),
    "percent-as-share": Way(
        "you took the {utilisation:g} as a share: it is a percentage, and {utilisation:g}% of the time is {share:g} of it",
        ("utilisation_percent / 100", "utilisation_percent"),
    ),
    "always-busy": Way(
        "you left the utilisation out: the service has work for {utilisation:g}% of its time, and the rest is paid for, too",
        ("* utilisation_percent / 100", ""),
    ),
    "seconds-for-hours": Way(
        "the price is per hour and the tokens are per second: an hour has 3,600 seconds. Your cost is off by that factor",
        ("usd_per_hour * 24 /", "usd_per_hour * 24 * 3600 /"),
    ),
    "thousand": Way(
        "you computed the price of a thousand tokens, not of a million", ("1_000_000", "1_000"),
    ),
    "one-gpu": Way(
        "your cost is {gpus} times too high: the price is for the whole instance, and all of its {gpus} GPUs generate tokens",
        ("* tokens_per_s * gpus", "* tokens_per_s"),
    ),
    "never-interrupted": Way(
        "you left the interruptions out: {interruptions:g} times a day, {minutes:g} minutes are paid for and produce nothing",
        ("(24 * 3600 - lost_s)", "24 * 3600"),
    ),
    "lost-while-busy": Way(
        "you subtracted the lost minutes from the busy time. An instance may be taken back while it has nothing to do: it has "
        "work for {utilisation:g}% of the time that is left after the losses",
        ("(24 * 3600 - lost_s) * utilisation_percent / 100", "24 * 3600 * utilisation_percent / 100 - lost_s"),
    ),
    "minutes-as-seconds": Way(
        "you took the minutes that an interruption costs for seconds: your loss is 60 times too small",
        ("minutes_lost * 60", "minutes_lost"),
    ),
    "interruptions-an-hour": Way(
        "you counted the interruptions of a whole day in every hour",
        ("interruptions_per_day * minutes_lost * 60", "interruptions_per_day * minutes_lost * 60 * 24"),
    ),
    "saved-over-spot": Way(
        "you divided the saving by the price of spot. Spot must generate tokens for spot / on demand = {share:.0%} of the day, "
        "so it may lose the rest, {rest:.0%}",
        (
            "(1 - share_that_works) * 24 * 60 / minutes_lost",
            "(1 / share_that_works - 1) * 24 * 60 / minutes_lost",
        ),
    ),
    "share-that-works": Way(
        "your spot instance loses the {share:.0%} of the day in which it must work: it may lose the other {rest:.0%}",
        ("(1 - share_that_works)", "share_that_works"),
    ),
    "hours-of-a-day": Way(
        "you divided the hours of a day by minutes: a day has 1,440 minutes",
        ("* 24 * 60 / minutes_lost", "* 24 / minutes_lost"),
    ),
}  # fmt: skip
SERVICES = (  # dollars an hour, GPUs, tokens a second of one, percent at work, interruptions a day, minutes lost
    (0.526, 1, 200.0, 40.0, 0.0, 0.0),
    (0.8048, 1, 1250.0, 100.0, 3.0, 8.0),
    (21.957642, 8, 2400.0, 65.0, 0.0, 5.0),
    (0.347, 4, 731.0, 12.5, 5.0, 20.0),
)
SPOT = ((0.2132, 0.526, 10.0), (0.5525, 0.8048, 45.0), (0.1, 1.0, 3.0))


def judge(part: Part) -> None:
    """Judge the cost of four services, then three break-evens of spot."""
    cost, most = part.function("usd_per_million"), part.function("most_interruptions")
    part.compare([_cost(part, cost, service) for service in SERVICES])
    part.compare([_break_even(part, most, prices) for prices in SPOT], tolerance=1e-6)
    part.note(f"right for {len(SERVICES)} services and {len(SPOT)} spot prices")


def _cost(part: Part, cost: Callable[..., float], service: tuple[float, ...]) -> Case:
    usd, gpus, speed, percent, interruptions, minutes = service
    name = f"{usd} $/h, {gpus} GPUs of {speed:g} tokens/s, {percent:g} % busy, {interruptions:g} x {minutes:g} min lost a day"

    def right(hour: float, share: float, lost_minutes: float) -> float:
        return hour * 24 / ((1440 - lost_minutes) * 60 * share * speed * gpus) * 1e6

    share, lost_time = percent / 100, interruptions * minutes
    answer = right(usd, share, lost_time)
    ways = {
        "utilisation-upside-down": right(usd, 1 / share, lost_time), "percent-as-share": right(usd, percent, lost_time),
        "always-busy": right(usd, 1, lost_time), "seconds-for-hours": answer * 3600, "thousand": answer / 1e3,
        "one-gpu": answer * gpus,
        "never-interrupted": right(usd, share, 0), "lost-while-busy": right(usd, 1, 1440 * (1 - share) + lost_time),
        "minutes-as-seconds": right(usd, share, lost_time / 60),
        "interruptions-an-hour": right(usd, share, lost_time * 24) if lost_time * 24 != 1440 else answer,
    }  # fmt: skip
    values = {"utilisation": percent, "share": share, "times": 1 / share, "gpus": gpus, "interruptions": interruptions,
              "minutes": minutes}  # fmt: skip
    return Case(name, part.call(cost, *service, case=name), answer, ways, values)


def _break_even(part: Part, most: Callable[..., float], prices: tuple[float, float, float]) -> Case:
    spot, demand, minutes = prices
    name = f"{spot} $/h on spot, {demand} on demand, {minutes:g} minutes lost each time"
    share = spot / demand
    day = 1440 / minutes
    ways = {"saved-over-spot": (1 / share - 1) * day, "share-that-works": share * day, "hours-of-a-day": (1 - share) * day / 60}
    return Case(name, part.call(most, *prices, case=name), (1 - share) * day, ways, {"share": share, "rest": 1 - share})
