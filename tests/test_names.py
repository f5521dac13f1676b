"""The rule for names: functions are verbs, values are nouns, and the name of a test fits into a line."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tests.over_files import nodes_of

ROOT = Path(__file__).parents[1]
FILES = [
    path
    for folder in ("src", "tests", "benchmarks", "exercises", "terraform", "docs")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
MOST = 70  # characters of a test's name
VAGUE = {"found", "one", "each"}
PARTICIPLE = re.compile(
    r"[a-z]+(?<!ne)(?<!fe)ed|told|made|ran|built|found|held|kept|left|lost|said|sent|taken|given|known|seen|shown|written|drawn|"
    r"chosen|begun|done|gone|met|paid|thrown|spoken|spent|bound|bent|brought|caught|unseen|unwritten|broken|lent|hung|took"
)
OF_THE_MOMENT = re.compile(r"[a-z]+ing")  # of a class they are a noun: a `Reading`
VALUES = {"contextmanager", "fixture", "property"}  # `with writing(path)` reads as Python's own `closing` does
REPLACED = re.compile(  # words of an earlier vocabulary, in names and comments; docs/glossary.md has the ones that hold
    r"\b(?:rungs?|ladder|climb\w*|strays?|easel|purse|homecoming|premises|sabotage|ears|founding|circumstances)\b",
    re.IGNORECASE,
)
HOLDS_THE_WORDS = {"tests/test_names.py", "tests/unit/test_glossary.py"}
NO_NOUNS = {"Interrupted"}  # the error of a command that the person stopped
NO_PARTICIPLES = {
    "allocated", "reserved",  # torch.cuda's words for memory
    "bring", "speed", "nothing", "everything",
    "mapping", "copying", "training", "ending", "listing", "closing",  # nouns: what such a function gives
}  # fmt: skip


@functools.cache
def nodes() -> tuple[tuple[str, ast.AST], ...]:
    """Every node of every module with the module's path."""
    files = ((path.relative_to(ROOT).as_posix(), nodes_of(path)) for path in FILES)
    return tuple((place, node) for place, nodes in files for node in nodes)


def functions(*, without: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Where a function is, and its name; those with one of these decorators aside."""
    for place, node in nodes():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            decorators = {word for line in node.decorator_list for word in re.findall(r"\w+", ast.unparse(line))}
            if not decorators & {*without}:
                yield f"{place}:{node.lineno}", node.name


def test_no_function_is_named_by_a_participle_alone() -> None:
    named = [(place, name) for place, name in functions() if PARTICIPLE.fullmatch(name.strip("_"))]
    named += [(place, name) for place, name in functions(without=VALUES) if OF_THE_MOMENT.fullmatch(name.strip("_"))]
    assert [(place, name) for place, name in named if name.strip("_") not in NO_PARTICIPLES] == [], (
        "say what the function does: a verb"
    )


def test_no_function_has_a_name_that_says_nothing() -> None:
    assert [(place, name) for place, name in functions() if name.strip("_") in VAGUE] == [], "say what the function does"


def classes() -> Iterator[tuple[str, str]]:
    """Where a class is, and its name; those of tests, which nobody imports, aside."""
    for place, node in nodes():
        if isinstance(node, ast.ClassDef) and not place.startswith("tests/"):
            yield f"{place}:{node.lineno}", node.name


def classes_of_the_program() -> list[tuple[str, str]]:
    """Where a class of the program is, and its name."""
    return [(place, name) for place, name in classes() if place.startswith("src/")]


def test_no_class_is_named_by_a_participle_alone() -> None:
    single = [(place, name) for place, name in classes() if re.fullmatch("_?[A-Z][a-z]+", name)]
    named = [(place, name) for place, name in single if PARTICIPLE.fullmatch(name.strip("_").lower())]
    assert [(place, name) for place, name in named if name not in NO_NOUNS] == [], "say what it is: a noun"


def test_the_name_of_a_class_stands_for_one_class() -> None:
    names = [name for _, name in classes_of_the_program()]
    assert [(place, name) for place, name in classes_of_the_program() if names.count(name) > 1] == []


def test_no_value_has_a_name_that_says_nothing() -> None:
    """But for fields: theirs are the keys of manifests and of what nodes send."""
    fields = {
        id(field.target)
        for _, node in nodes()
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    }
    stored = (
        (f"{place}:{node.lineno}", node.id if isinstance(node, ast.Name) else node.arg)
        for place, node in nodes()
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields)
    )
    assert [(place, name) for place, name in stored if name in VAGUE] == [], "say what it is: a noun"


def test_the_name_of_a_test_fits_into_a_line() -> None:
    tests = [(place, name) for place, name in functions() if name.startswith("test_")]
    assert [(place, name) for place, name in tests if len(name) > MOST] == []


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "terraform"])
def test_no_code_has_a_word_that_was_replaced(folder: str) -> None:
    paths = [path for pattern in ("*.py", "*.tf", "*.hcl") for path in sorted((ROOT / folder).rglob(pattern))]
    places = [
        f"{name}:{number} {match[0]}"
        for path in paths
        if (name := path.relative_to(ROOT).as_posix()) not in HOLDS_THE_WORDS and ".terraform" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in REPLACED.finditer(line)
    ]
    assert places == []
