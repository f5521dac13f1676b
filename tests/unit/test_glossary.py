"""The glossary: each of its names exists in the code, and no text that a person reads has a word that it replaced."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.over_files import nodes_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gpucourse"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| `([\w.]+)` \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
MOST = 30
RETIRED = {
    r"\b(?:come|comes|came|coming|bring|brings|bringing|brought)\b[^.;]{0,30}\bhome\b": "collect, collected",
    r"\bhome yet\b": "collected yet",
    r"\bmend(?:s|ed|ing)?\b": "fix, repair",
    r"\bheal(?:s|ed|ing)?\b": "repair",
    r"(?<![-\w])anew\b": "again, re-",
    r"\bstands? (?:already|up|twice)\b": "exists already, deploy, appears twice",
    r"\bvouch": "confirm",
    r"\bleft-over": "leftover",
    r"\blet go of run\b": "detached",
    r"\bstrays?\b|\borphan": "resource that no record explains",
    r"\bpurse\b": "budget",
    r"\brungs?\b|\bladder\b|\bclimb": "readiness check",
    r"\bsabotag|\bplanted\b": "inject a fault",
    r"\beasel\b": "plot worker",
    r"\bhomecoming\b|\bpremises\b|\bfounding\b|\bfounded\b": "collect, host facts, new deployment",
    r"\btime-outs?\b": "timeout",
    r"\bnobody (?:is there )?to ask\b": "not a terminal",
    r"\bnot well\b": "unhealthy",
    r"\bexclude each|\bstands alone\b": "cannot be combined",
    r"\bthe present folder\b|; (?:the newest|one by chance) without\b": "default: ...",
    r"\bgoes on by itself\b": "is running in the background",
}
SLURMS_OWN = {"Orphan StepId"}  # a message of slurmctld that a log is searched for


def literals(path: Path) -> Iterator[str]:
    """The text in a module that a person may read: string literals, and in `cli` docstrings, which are the help texts."""
    docstrings = {id(node.value) for node in nodes_of(path) if isinstance(node, ast.Expr)}
    helps = path.parent.name == "cli"
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (helps or id(node) not in docstrings):
            yield node.value


@cache
def texts() -> list[tuple[str, str]]:
    """Where a text is, and the text: the program's messages, the pages, the lessons and the manifests."""
    return [(place, text) for place, text in list_texts() if text not in SLURMS_OWN]


def list_texts() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield from ((path.relative_to(ROOT).as_posix(), text) for text in literals(path) if " " in text.strip())
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "modules").rglob("*.*")]
    for page in pages:
        if page.suffix in {".md", ".yaml"} and page.name != "glossary.md":
            yield page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8")


def test_it_is_short_and_every_row_is_read() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert len(ROWS) == sum(line.startswith("| ") for line in page.splitlines()) - 1, "a row that does not have three cells"
    assert 20 <= len(ROWS) <= MOST
    assert len({word for word, _, _ in ROWS}) == len(ROWS), "a word stands twice"


@pytest.mark.parametrize(("word", "name"), [(word, name) for word, _, name in ROWS])
def test_what_a_word_means_is_where_the_glossary_says(word: str, name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, member = name.rpartition(".")
        assert hasattr(importlib.import_module(module), member), f"{word}: there is no {name}"


@pytest.mark.parametrize("retired", RETIRED)
def test_no_text_has_a_word_that_was_replaced(retired: str) -> None:
    pattern = re.compile(retired, re.IGNORECASE)
    places = [
        f"{place}: ...{text[max(0, m.start() - 40) : m.end() + 40]!r}"
        for place, text in texts()
        for m in pattern.finditer(text)
    ]
    assert places == [], f"write {RETIRED[retired]!r}:\n" + "\n".join(places)


def test_readme_and_architecture_lead_to_it() -> None:
    for page in ("README.md", "docs/architecture.md"):
        assert "glossary.md)" in (ROOT / page).read_text(encoding="utf-8"), page
