"""Judge a repaired copy: a prompt begins with the first field of the required order, and has each field once."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the order begins with {first}, but the prompt begins with another field, so {percent:.1f} % are found")}


def judge(part: Part) -> None:
    """Require that prompts have their fields in the order that was chosen."""
    module = part.module
    order = ["tools", "system", "documents", "history", "user", "time", "request_id"]
    percent = part.call(module.measure_found, order)
    for fields in (order, order[::-1]):
        prompt = {name: name for name in fields}
        if part.call(module.render, prompt, fields) != "".join(fields):
            raise part.wrong("still", first=fields[0], percent=percent)
    part.note(f"prompts have the chosen order, and {percent:.1f} % of their tokens are found")
