"""Every file, module and name of the code that the pages for contributors name exists."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gpucourse"
ARCHITECTURE, CONTRIBUTING, GLOSSARY = (
    (ROOT / page).read_text(encoding="utf-8") for page in ("docs/architecture.md", "CONTRIBUTING.md", "docs/glossary.md")
)
PACKAGES = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir())


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`([\w./-]+\.py)`", ARCHITECTURE + CONTRIBUTING))))
def test_file_on_a_page_exists(file: str) -> None:
    folders = (ROOT, SOURCE, *(path for path in SOURCE.rglob("*") if path.is_dir()), ROOT / "exercises")
    assert any((folder / file).is_file() for folder in folders)


@pytest.mark.parametrize("name", sorted(set(re.findall(rf"`((?:{PACKAGES})(?:\.\w+)+)(?:\(\))?`", ARCHITECTURE))))
def test_name_in_the_architecture_exists(name: str) -> None:
    pkgutil.resolve_name(f"gpucourse.{name}")


@pytest.mark.parametrize("name", re.findall(r"^\| [^|]+ \| [^|]+ \| `([\w.]+)` \|$", GLOSSARY, re.MULTILINE))
def test_name_in_the_glossary_exists(name: str) -> None:
    pkgutil.resolve_name(name)
