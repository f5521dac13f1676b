"""The Pythons that are promised: one range everywhere, and a check of them that fails when one of them does."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests import pythons


def test_one_range_of_pythons_is_promised_everywhere() -> None:
    versions = pythons.list_promised_versions()
    project = tomllib.loads((pythons.ROOT / "pyproject.toml").read_text())
    oldest = versions[0]
    major, minor = oldest.split(".")
    assert project["project"]["requires-python"] == f">={oldest}"
    assert project["tool"]["ruff"]["target-version"] == f"py{major}{minor}"
    assert project["tool"]["mypy"]["python_version"] == oldest
    assert f"You need Python {', '.join(versions[:-1])} or {versions[-1]} " in (pythons.ROOT / "README.md").read_text()
    makefile = (pythons.ROOT / "Makefile").read_text()
    assert f"({major}, {minor})" in makefile
    assert f"gpucourse needs Python {oldest} or newer" in makefile


def test_a_python_that_fails_is_reported(tmp_path: Path) -> None:
    broken = tmp_path / "python3.12"
    broken.write_text("#!/bin/sh\necho 'no module named venv' >&2\nexit 1\n")
    broken.chmod(0o755)
    code, report = pythons.check("3.12", str(broken))
    assert code == 1
    assert report.startswith(f"Python 3.12: FAILED: {broken} -m venv ")
    assert "no module named venv" in report


def test_a_python_that_cannot_make_environments_is_not_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / ".pyenv" / "versions" / "3.12.1" / "bin" / "python3.12"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pythons.find_python("3.12") is None


def test_torch_is_new_enough_to_load_files() -> None:
    """Before 2.6 torch.load ran code of the file even with weights_only (CVE-2025-32434)."""
    local = tomllib.loads((pythons.ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["local"]
    torch = next(Requirement(line) for line in local if line.startswith("torch"))
    assert not torch.specifier.contains("2.5.1")
    assert torch.specifier.contains("2.6.0")
