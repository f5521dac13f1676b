"""Judge a repaired copy: it must warm up both trainings before the clock starts, or leave out both first calls."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("the first call of '{name}' takes {cold:g} s and each later one {warm:g}; it is measured with {measured}"),
    "rounds": Way("asked for {rounds} rounds, it measured '{name}' {count} times"),
}
REPAIRS = (
    (
        """    for number in range(rounds):
        data = pipeline.make_data(samples, SEED + 1 + number)
        for name, train in ways.items():
            measured[name].append(time_training(train, data, epochs))
    return measured
""",
        """    for number in range(rounds + 1):
        data = pipeline.make_data(samples, SEED + 1 + number)
        for name, train in ways.items():
            measured[name].append(time_training(train, data, epochs))
    return {name: times[1:] for name, times in measured.items()}
""",
    ),
)
COLD_S, WARM_S, ROUNDS = 10.0, 1.0, 3


class Training:
    """A training run whose first call takes longer. `seconds` is the time of its last call."""

    def __init__(self) -> None:
        self.seconds, self.calls = 0.0, 0

    def __call__(self, *_: object) -> None:
        """Train, and store the seconds of this call."""
        self.seconds = WARM_S if self.calls else COLD_S
        self.calls += 1


class Data:
    """A replacement for the module that makes the data."""

    @staticmethod
    def make_data(*_: object) -> tuple[list[Any], list[Any]]:
        """Return empty data, because the trainings here need none."""
        return [], []


def judge(part: Part) -> None:
    """Require that two training runs with slow first calls are both warm when they are measured."""

    def time_training(train: Training, data: Any, epochs: int) -> tuple[float, object]:
        train(*data, epochs)
        return train.seconds, None

    names = {"pipeline": Data, "time_training": time_training, "device": None, "WARM": 1, "SEED": 0}
    time_in_turns = part.function_alone("time_in_turns", **names)
    seconds_row = part.call(time_in_turns, {"delivered": Training(), "yours": Training()}, 32, 1, ROUNDS)
    for way, times in seconds_row.items():
        seconds = [second for second, _ in times]
        if len(seconds) != ROUNDS:
            raise part.wrong("rounds", name=way, rounds=ROUNDS, count=len(seconds))
        if any(second != WARM_S for second in seconds):
            raise part.wrong(
                "still", name=way, cold=COLD_S, warm=WARM_S, measured=", ".join(f"{second:g}" for second in seconds)
            )
    part.note("both trainings are warmed up when they are measured, in every round")
