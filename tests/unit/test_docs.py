"""Pages that repeat facts of the program agree with it: names in the code, prices, the files of the tutorial."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from docs import screens, session

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
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
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
        "docs/faq.md": f"at its deadline ({default} unless",
        "docs/cost-and-safety.md": f"({default}, or `--ttl`)",
        "docs/larger-clusters.md": f"at most {MAX_NODES} nodes, at most {longest}",
        "docs/commands.md": f"a lab of up to {MAX_NODES} nodes",
    }.items():
        assert sentence in (ROOT / page).read_text(encoding="utf-8"), page


def list_pages() -> dict[str, str]:
    """Return the text of every page, by its name, and of the top-level files that may name the repository."""
    patterns = ("*.md", "docs/*.md", "*.yml", "*.toml", "Dockerfile", ".devcontainer/*", ".github/**/*.*")
    files = [file for pattern in patterns for file in ROOT.glob(pattern)]
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def test_pages_name_the_repository_as_the_project_does() -> None:
    for page, text in list_pages().items():
        addresses = set(re.findall(r"https://github\.com/[\w.-]+/gpucourse\b", text))
        assert addresses <= {PROJECT["urls"]["Repository"]}, page


def test_tables_of_pages_have_a_header() -> None:
    assert [page for page, text in list_pages().items() if re.search(r"^(\| )+\|\n\|--", text, re.MULTILINE)] == []


def test_badges_of_the_readme_are_true() -> None:
    text = cost_table.README.read_text(encoding="utf-8")
    python = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if "Python :: 3." in name]
    assert f"![Python {', '.join(python)}](https://img.shields.io/badge/python-{'_%7C_'.join(python)}-" in text
    assert f"/badge/licence-{PROJECT['license'].replace('-', '_')}-" in text
    (workflow,) = set(re.findall(r"actions/workflows/(\w+\.yml)", text))
    assert (ROOT / ".github" / "workflows" / workflow).is_file()


def test_readme_begins_with_what_the_demo_ends_with(tmp_path: Path) -> None:
    """Compare the first block of the README, which can be pasted: after `make demo`, it has what the demo says to type next."""
    program = tmp_path / ".venv" / "bin" / "gpucourse"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@" >> typed\n')
    program.chmod(0o755)
    environ = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/bash", "GPUCOURSE_WORKSPACE": str(tmp_path / ".demo")}
    command = ["sh", str(ROOT / "demo.sh"), ".venv/bin/gpucourse"]
    screen = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True).stdout
    assert (tmp_path / "typed").read_text() == "deploy 3\nrun 3.2 --nodes 2\ndestroy --all --yes\n"
    assert f"the run of the demo is in\n{tmp_path}/.demo\n" in screen
    block = re.search(r"```sh\n(.*?)```", cost_table.README.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    clone, *lines = block[1].splitlines()
    assert clone == f"git clone {PROJECT['urls']['Repository']} && cd gpucourse"
    assert lines == ["make demo", *screen.splitlines()[-2:]] == ["make demo", "source .venv/bin/activate", "gpucourse next"]


def test_draw_scrolls_to_the_last_line() -> None:
    rows = [(float(second), f"line {second} <&>") for second in range(session.WINDOW + 2)]
    picture = ET.fromstring(session.draw(rows))
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}text"))) == len(rows)
    (style,) = picture.iter("{http://www.w3.org/2000/svg}style")
    assert f"#lines {{ transform: translateY({-2 * session.LINE:g}px); }}" in str(style.text)


def test_site_keeps_the_words_of_commands_in_tables_whole() -> None:
    hooks = pytest.importorskip("docs.hooks", exc_type=ImportError)
    assert (
        hooks.on_page_content("<td><code>run --set</code></td>") == "<td><code><span>run</span> <span>--set</span></code></td>"
    )


def test_pages_and_manifests_write_units_in_one_form() -> None:
    forms = re.compile(r"\d%(?![\w%{(])|\d us\b|: us$|, us\"")
    paths = (*ROOT.glob("modules/**/*.md"), *ROOT.glob("modules/*/*.yaml"), *ROOT.glob("docs/*.md"))
    lines = [(path.name, line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    bad_lines = [line for line in lines if forms.search(line[1]) and "array=" not in line[1]]
    assert [line for line in bad_lines if "`45%`" not in line[1]] == []


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
    """Type the tutorial in a terminal, from the empty folder to the points. `make docs` does the same with every page."""
    assert screens.renew(TUTORIAL)[1] == []
