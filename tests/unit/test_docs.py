"""Pages that repeat the program say what the program says: names of the code, prices, the files of the tutorial."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest
from docs import screens

from gpucourse.course.locate import find_template
from gpucourse.limits import DEFAULT_LAB_HOURS, MAX_LAB_HOURS, MAX_NODES
from tests import cost_table

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gpucourse"
ARCHITECTURE, CONTRIBUTING, GLOSSARY = (
    "\n".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    for pages in (
        ("docs/architecture.md", "docs/inside.md", "docs/libraries.md", "docs/extending.md"),
        ("CONTRIBUTING.md",),
        ("docs/glossary.md",),
    )
)
PACKAGES = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir())
TUTORIAL = screens.PAGES / "authoring.md"


def test_files_that_contributors_read_of_exist() -> None:
    folders = (ROOT, SOURCE, *(path for path in SOURCE.rglob("*") if path.is_dir()), ROOT / "exercises")
    files = set(re.findall(r"`([\w./-]+\.py)`", ARCHITECTURE + CONTRIBUTING))
    assert [file for file in files if not any((folder / file).is_file() for folder in folders)] == []


def test_names_that_contributors_read_of_exist() -> None:
    names = {f"gpucourse.{name}" for name in re.findall(rf"`((?:{PACKAGES})(?:\.\w+)+)(?:\(\))?`", ARCHITECTURE)}
    for name in names | set(re.findall(r"^\| [^|]+ \| [^|]+ \| `([\w.]+)` \|$", GLOSSARY, re.MULTILINE)):
        pkgutil.resolve_name(name)


def test_cost_table_is_worked_out_from_the_manifests_and_the_shipped_prices() -> None:
    text = cost_table.PAGE.read_text(encoding="utf-8")
    assert cost_table.page_with(cost_table.table()) == text, "write it again: python -m tests.cost_table --write"


def test_syllabus_is_worked_out_from_the_manifests_and_the_rubric() -> None:
    text = cost_table.README.read_text(encoding="utf-8")
    page = cost_table.page_with(cost_table.syllabus(), cost_table.README)
    assert page == text, "write it again: python -m tests.cost_table --write"


def test_pages_state_the_limits_of_the_program() -> None:
    default, longest = f"{DEFAULT_LAB_HOURS:.0f} hours", f"{MAX_LAB_HOURS:.0f} hours"
    for page, sentence in {
        "README.md": f"at its deadline ({default};",
        "docs/faq.md": f"at its deadline ({default} unless",
        "docs/cost-and-safety.md": f"({default}, or `--ttl`)",
        "docs/larger-clusters.md": f"at most {MAX_NODES} nodes, at most {longest}",
        "docs/commands.md": f"a lab of up to {MAX_NODES} nodes",
    }.items():
        assert sentence in (ROOT / page).read_text(encoding="utf-8"), page


def read_files(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def test_files_of_the_tutorial_are_the_template(tmp_path: Path) -> None:
    for block in screens.BLOCK.finditer(TUTORIAL.read_text(encoding="utf-8")):
        if block["file"] and block["file"].startswith("halves/"):
            screens.write_block(tmp_path / block["file"], block["body"])
    assert read_files(tmp_path / "halves") == read_files(find_template())


@pytest.mark.slow
@pytest.mark.system
def test_tutorial_shows_what_its_commands_print() -> None:
    """From the empty folder to the points, in a terminal; `make docs` does the same with every page."""
    assert screens.renew(TUTORIAL)[1] == []
