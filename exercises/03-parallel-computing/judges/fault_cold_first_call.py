"""Judge a repaired copy: warm-up calls must come first."""

from __future__ import annotations

import ast

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("no warm-up call runs before the calls that count"),
    "no-loop": Way("the loop to be judged is missing: change it, but keep it"),
}


def judge(part: Part) -> None:
    """Check that the loop over sizes makes warm-up calls before the timed calls, or uses the timing loop with a warm-up."""
    tree = part.call(ast.parse, part.text)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For) and ast.unparse(node.iter) == "sizes"]
    if not loops:
        raise part.wrong("no-loop")
    for node in ast.walk(loops[0]):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("time_calls"):
            part.note("the timing loop warms up before it counts")
            return
    timed = [
        place for place, node in enumerate(loops[0].body) if "time_each" in ast.unparse(node) and isinstance(node, ast.Assign)
    ]
    preceding = loops[0].body[: timed[0]] if timed else []
    if not any("all_reduce" in ast.unparse(node) and not isinstance(node, ast.Assign) for node in preceding):
        raise part.wrong("still")
    part.note("warm-up calls run before those that count")
