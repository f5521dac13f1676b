"""Judge a repaired copy: a gang waits until it starts, not until it ends."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("a gang of 30 minutes that starts in the minute in which it arrives is said to wait {given:g} minutes")}
REPAIRS = (
    (
        "waits += [starts[gang.name] + gang.minutes - gang.arrives for gang in day.gangs]",
        "waits.extend(starts[gang.name] - gang.arrives for gang in day.gangs)",
    ),
)


def judge(part: Part) -> None:
    """Count the waits of two gangs: the first finds all nodes free, and the second waits for the first."""
    module = part.module
    gangs = (module.Gang("job-00", 8, 30, 5), module.Gang("job-01", 8, 20, 10))
    count = part.function("count_waits")
    alone = part.call(count, [module.Day(1, 8, gangs[:1])], module.keep_order, rules=False)
    if alone["mean_wait_min"] != 0:
        raise part.wrong("still", given=alone["mean_wait_min"])
    both = part.call(count, [module.Day(1, 8, gangs)], module.keep_order, rules=False)
    if both["longest_wait_min"] != 25:
        raise part.wrong("still", given=both["longest_wait_min"])
    part.note("a wait ends when the gang starts")
