"""Find the judge and the solutions of a learner's part or of a fault. No code in these files is executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gpucourse.model.manifest import CodeFault

MIN_WAYS = 3
SOLUTIONS, OTHER = "solutions", "other"
MAX_EQUAL_CHARACTERS = 80
"""If a solution adds at most this many characters of code, without white space, equal code does not prove copying: two people
may write it in the same way."""
_BRACES = {".bt", ".c", ".cu"}
_BRACE_COMMENTS = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_HASH_COMMENT = re.compile(r"(?:^|\s)#.*", re.MULTILINE)
Change = tuple[str, str]


def find_gaps(file: Path, judge: Path) -> Iterator[str]:
    """Yield a sentence for each missing or faulty piece of the learner's `file` or its `judge`."""
    solution, second_solution = list_solutions(file)
    missing = find_missing_files(file, judge)
    yield from (f"{name} is missing" for name in missing)
    if missing:
        return
    if solution.read_bytes() == second_solution.read_bytes():
        yield f"{OTHER}/{file.name} is the same as the first solution: write a different one, which must pass as well"
    try:
        ways = read_ways(judge)
    except (SyntaxError, ValueError) as error:
        yield f"{judge.parent.name}/{judge.name}: {error}"
        return
    if len(ways) < MIN_WAYS:
        yield f"its judge recognises too few wrong ways: {len(ways)}, but at least {MIN_WAYS} are needed"
    text = solution.read_text(encoding="utf-8")
    for name, (old, _) in ways.items():
        if (count := text.count(old)) != 1:
            yield f"way {name}: the text that it changes occurs {count} times in the solution, but must occur once"


def list_solutions(file: Path) -> tuple[Path, Path]:
    """Return the paths of the two solutions of a learner's file."""
    return file.parent / SOLUTIONS / file.name, file.parent / SOLUTIONS / OTHER / file.name


def is_solution(file: Path, delivered: Path) -> bool:
    """Return whether a learner's file equals a solution, apart from comments and whitespace. Return False if the solution
    adds at most MAX_EQUAL_CHARACTERS characters to the course's file `delivered`, because equal code then proves nothing.
    Nothing in the file is executed."""
    code = _read_code(file)
    equal = [solution for solution in list_solutions(delivered) if solution.is_file() and _read_code(solution) == code]
    return any(_count_new_characters(solution, delivered) > MAX_EQUAL_CHARACTERS for solution in equal)


def choose_solution(file: Path, delivered: Path) -> Path | None:
    """Return the solution to show beside a learner's file: the first whose code differs from the learner's, otherwise the
    first. Return None if the course has none."""
    solutions = [solution for solution in list_solutions(delivered) if solution.is_file()]
    code = _read_code(file)
    return next((solution for solution in solutions if _read_code(solution) != code), next(iter(solutions), None))


def _count_new_characters(solution: Path, delivered: Path) -> int:
    """Count the characters, without white space, in the lines of code of a solution that are not in the delivered file."""
    new_lines = Counter(_list_lines(solution)) - Counter(_list_lines(delivered))
    return len("".join("".join(new_lines.elements()).split()))


def _list_lines(file: Path) -> list[str]:
    """Return the lines of a course file without comments, docstrings and empty lines."""
    if file.suffix != ".py":
        return _strip_comments(file).splitlines()
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for body in _list_documented(ast.parse(text)):
        begin, end = body[0].lineno - 1, body[0].end_lineno or body[0].lineno
        lines[begin:end] = [""] * (end - begin)
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _read_code(file: Path) -> str:
    """Return the code of a file without comments, docstrings and whitespace differences. Return an empty string for a .py file
    that is not valid Python."""
    return _strip_python(file.read_bytes()) if file.suffix == ".py" else "".join(_strip_comments(file).split())


def _strip_comments(file: Path) -> str:
    """Return the text of a non-Python file without comments, empty lines, and spaces at the ends of lines."""
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    text = _BRACE_COMMENTS.sub("", text) if file.suffix in _BRACES else _HASH_COMMENT.sub("", text)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _strip_python(data: bytes) -> str:
    """Return a Python program as `ast` formats it, without docstrings. Return an empty string if it is not valid."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(data)
        for body in _list_documented(tree):
            del body[0]
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def _list_documented(tree: ast.Module) -> list[list[ast.stmt]]:
    """Return the bodies of the module, the classes and the functions that have a docstring."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.body for node in ast.walk(tree) if isinstance(node, kinds) and isinstance(ast.get_docstring(node), str)]


def find_syntax_error(file: Path) -> SyntaxError | None:
    """Return the error if a .py file is not valid Python, or None if it is. Nothing in the file is executed."""
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(file.read_bytes() if file.suffix == ".py" else b"", filename=file.name)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL byte, in Python 3.11, or too many brackets
        return SyntaxError(str(error))
    return None


def find_missing_files(file: Path, judge: Path) -> list[str]:
    """Return the names of the judge and the solutions that a learner's file lacks."""
    return [path.relative_to(file.parent).as_posix() for path in (judge, *list_solutions(file)) if not path.is_file()]


def name_fault_judge(fault: CodeFault) -> str:
    """Return the name of the judge for the repaired copy of a fault, without .py."""
    return f"fault_{fault.id.replace('-', '_')}"


def _find_ways(tree: ast.Module) -> ast.Dict | None:
    """Return the literal dictionary WAYS of a judge, or None."""
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id == "WAYS" and isinstance(node, (ast.Assign, ast.AnnAssign)):
            return node.value if isinstance(node.value, ast.Dict) else None
    return None


def read_ways(judge: Path) -> dict[str, Change]:
    """Return the wrong ways that a judge recognises, by name. Each has a change, as old and new text, that turns the solution
    into that wrong way.

    Raises SyntaxError if the file is not Python, and ValueError if its WAYS are not literals.
    """
    ways = _find_ways(ast.parse(judge.read_text(encoding="utf-8"), filename=judge.name))
    if ways is None:
        raise ValueError("has no dictionary WAYS that is a literal")
    return dict(_read_way(key, value) for key, value in zip(ways.keys, ways.values, strict=True))


def _read_way(key: ast.expr | None, value: ast.expr) -> tuple[str, Change]:
    name = ast.literal_eval(key) if key is not None else "**"
    keywords = {keyword.arg: keyword.value for keyword in value.keywords} if isinstance(value, ast.Call) else {}
    change = value.args[1] if isinstance(value, ast.Call) and len(value.args) > 1 else keywords.get("change")
    texts = change.elts if isinstance(change, ast.Tuple) else []
    words = [text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)]
    if len(words) != 2:
        raise ValueError(f"way {name}: its change is not two literal texts, old and new")
    return str(name), (words[0], words[1])
