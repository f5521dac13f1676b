"""Judge a repaired copy: no step may wait for the device."""

from __future__ import annotations

import ast

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("line {line} still reads a value in every step, with {name}"),
    "no-loop": Way("the loop to be judged is missing: change it, but keep it"),
}
READERS = {"item", "tolist", "cpu", "numpy"}


def judge(part: Part) -> None:
    """Check that no step of the training loop reads a value of a tensor."""
    tree = part.call(ast.parse, part.text)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For) and "loader" in ast.unparse(node.iter)]
    if not loops:
        raise part.wrong("no-loop")
    for node in (node for loop in loops for statement in loop.body for node in ast.walk(statement)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in READERS | {"float", "print", "say"}:
            raise part.wrong("still", line=node.lineno, name=name)
    part.note("no step reads a value: nothing waits for the device inside an epoch")
