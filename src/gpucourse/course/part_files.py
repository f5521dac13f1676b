"""What belongs to a part that a learner writes: a judge that knows wrong ways, a solution, another one. Nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

FEWEST_WAYS = 3
SOLUTIONS, OTHER = "solutions", "other"
Change = tuple[str, str]


def find_gaps(file: Path, judge: Path) -> Iterator[str]:
    """What the learner's `file` with its `judge` lacks, one sentence each."""
    solution = file.parent / SOLUTIONS / file.name
    wanted = (judge, solution, file.parent / SOLUTIONS / OTHER / file.name)
    missing = [path.relative_to(file.parent).as_posix() for path in wanted if not path.is_file()]
    yield from (f"{name} is missing" for name in missing)
    if missing:
        return
    try:
        ways = read_ways(judge)
    except (SyntaxError, ValueError) as error:
        yield f"{judge.parent.name}/{judge.name}: {error}"
        return
    if len(ways) < FEWEST_WAYS:
        yield f"its judge knows too few wrong ways: {len(ways)} of at least {FEWEST_WAYS}"
    text = solution.read_text(encoding="utf-8")
    for name, (old, _) in ways.items():
        if (count := text.count(old)) != 1:
            yield f"way {name}: the text that it changes occurs {count} times in the solution, and must occur once"


def read_ways(judge: Path) -> dict[str, Change]:
    """The wrong ways that a judge knows, each with the change to the solution that leads there, as old and new text.

    Raises SyntaxError where the file is no Python, ValueError where its WAYS are not written out.
    """
    for node in ast.parse(judge.read_text(encoding="utf-8"), filename=judge.name).body:
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id == "WAYS" and isinstance(node, (ast.Assign, ast.AnnAssign)):
            if not isinstance(node.value, ast.Dict):
                break
            return dict(_read_way(key, value) for key, value in zip(node.value.keys, node.value.values, strict=True))
    raise ValueError("has no dictionary WAYS that is written out")


def _read_way(key: ast.expr | None, value: ast.expr) -> tuple[str, Change]:
    name = ast.literal_eval(key) if key is not None else "**"
    given = {keyword.arg: keyword.value for keyword in value.keywords} if isinstance(value, ast.Call) else {}
    change = value.args[1] if isinstance(value, ast.Call) and len(value.args) > 1 else given.get("change")
    texts = change.elts if isinstance(change, ast.Tuple) else []
    words = [text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)]
    if len(words) != 2:
        raise ValueError(f"way {name}: its change is not two texts, old and new, that are written out")
    return str(name), (words[0], words[1])
