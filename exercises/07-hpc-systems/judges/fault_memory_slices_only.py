"""Judge a repaired copy: an instance must begin only where its profile allows it to."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{name} at {start} is still accepted: it may begin only at {starts}")}


def judge(part: Part) -> None:
    """Judge every profile of every card at every slice."""
    find_problems, cards = part.function("find_problems"), part.module.CARDS
    for card in cards.values():
        for profile in card.profiles:
            for start in range(card.memory - profile.memory + 1):
                is_refused = bool(part.call(find_problems, card, [profile.name], [(0, start)]))
                if is_refused == (start in profile.starts):
                    starts = ", ".join(map(str, profile.starts))
                    raise part.wrong("still", name=profile.name, start=start, starts=starts)
    part.note("every start is one that the driver accepts")
