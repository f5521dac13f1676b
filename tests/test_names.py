"""The rule for names: functions are verbs, values are nouns, and the name of a test fits into a line."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tests.over_files import last_word, nodes_of

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
# Names that Terraform files and shell programs give: to variables, outputs, local values, resources, and what a loop goes over.
TERRAFORM = re.compile(
    r'^\s*(?:variable|output|module)\s+"(\w+)"|^\s*(?:resource|data)\s+"\w+"\s+"(\w+)"|\bfor\s+(\w+(?:,\s*\w+)?)\s+in\b',
    re.MULTILINE,
)
LOCALS = re.compile(r"^locals\s*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
SHELL_VALUE = re.compile(
    r"(?:^|[;&|({]|\b(?:export|readonly|then|do|else))\s*(\w+)\+?=(?!=)|\bfor\s+(\w+)\s+in\b"
    r"|\bread\s+(?:-\w+\s+)*(\w+(?: \w+)*)"
    r"|\b(?:local|declare)\s+(?:-\w+\s+)*([^;&|#\n]+)",
    re.MULTILINE,
)
SHELL_FUNCTION = re.compile(r"^\s*(?:function\s+)?(\w+)\s*\(\)", re.MULTILINE)
SHARED = {"shared"}  # the folder that all nodes see; a lab's record calls it so as well
NO_NOUNS = {"Interrupted"}  # the error of a command that the person stopped
NO_PARTICIPLES = {
    "allocated", "reserved",  # torch.cuda's words for memory
    "missing",  # Python's own name of what a dict does with an unknown key
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
            decorators = {last_word(getattr(line, "func", line)) for line in node.decorator_list}
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


def names_in_terraform(text: str) -> set[str]:
    """The names that a Terraform file gives."""
    names = {name for match in TERRAFORM.finditer(text) for name in re.findall(r"\w+", "".join(filter(None, match.groups())))}
    return names | {key for block in LOCALS.findall(text) for key in re.findall(r"^  (\w+)\s*=", block, re.MULTILINE)}


def names_in_shell(text: str) -> tuple[set[str], set[str]]:
    """The names of the functions and of the values of a shell program; what is quoted and what is a comment has none."""
    code = re.sub(r"(?:^|(?<=\s))#.*", "", text, flags=re.MULTILINE)
    values = {
        name.partition("=")[0].rstrip("+")
        for match in SHELL_VALUE.finditer(code)
        for name in "".join(filter(None, match.groups())).split()
    }
    return set(SHELL_FUNCTION.findall(code)), {name for name in values if re.fullmatch(r"[a-z]\w*", name)}


def says_nothing(name: str) -> bool:
    """Whether a value's name is no noun: a word of no meaning, or a participle alone."""
    return name in VAGUE or (name not in NO_PARTICIPLES | SHARED and PARTICIPLE.fullmatch(name) is not None)


def list_scripts(*patterns: str) -> list[Path]:
    """The Terraform files or shell programs that travel to AWS and to nodes, and those of the repository's own."""
    paths = [path for pattern in patterns for path in sorted((ROOT / "terraform").rglob(pattern))]
    return [path for path in paths if ".terraform" not in path.parts]


def test_names_in_terraform_are_nouns() -> None:
    files = list_scripts("*.tf")
    bad = {path.relative_to(ROOT).as_posix(): {*filter(says_nothing, names_in_terraform(path.read_text()))} for path in files}
    assert {path: names for path, names in bad.items() if names} == {}, "say what it is: a noun"


def test_names_in_shell_programs_are_nouns_and_verbs() -> None:
    files = [*list_scripts("*.sh", "*.sh.tftpl"), ROOT / "demo.sh", *sorted((ROOT / "tests").glob("*.sh"))]
    for path in files:
        functions, values = names_in_shell(path.read_text())
        assert {*filter(says_nothing, functions)} == {*filter(OF_THE_MOMENT.fullmatch, functions)} == set(), f"{path}: a verb"
        assert {*filter(says_nothing, values)} == set(), f"{path}: a noun"


def test_a_bad_name_in_terraform_or_shell_is_seen() -> None:
    planted = 'locals {\n  found = 1\n  nodes = [for each in var.nodes : each]\n}\nvariable "given" {}\noutput "ids" {}\n'
    assert {*filter(says_nothing, names_in_terraform(planted))} == {"found", "each", "given"}
    shell = (
        'told() { # one=1\n  local a=1 left seen=2\n  read -r held text; for one in x; do failed+=1; done\n  echo "made=1"\n}\n'
    )
    functions, values = names_in_shell(shell)
    assert {*filter(says_nothing, functions)} == {"told"}
    assert {*filter(says_nothing, values)} == {"left", "seen", "held", "one", "failed"}
    assert {"a", "text"} <= values


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
