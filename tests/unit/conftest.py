"""A learner in a small course, and one judge, whose process imports torch once."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from gpucourse.cli import app
from gpucourse.course import catalog
from gpucourse.judge.client import Judge
from gpucourse.outside.yaml_reader import read_document
from tests.forks import make_manifest_reader
from tests.learning import Learning


@pytest.fixture(scope="module", autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """Write files without waiting for the disk. Only a power cut would show the difference, and the waits took a sixth of the
    time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        yield


build_tree_once, get_command_once = functools.cache(app.tree), functools.cache(typer.main.get_command)
read_module_once, read_document_once = make_manifest_reader(), functools.lru_cache(maxsize=32)(read_document)


@pytest.fixture(scope="module", autouse=True)
def _parsers_are_built_once() -> Iterator[None]:
    """Build the parser of each command only once. A process of the program builds one, in 1 to 40 ms. System tests in this
    process build their own, because they may add a target."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "tree", build_tree_once)
        patch.setattr(typer.main, "get_command", get_command_once)
        yield


@pytest.fixture(scope="module", autouse=True)
def _manifests_are_read_once() -> Iterator[None]:
    """Read each manifest of the course of this repository only once, and parse the same text of another course only once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "read_module", read_module_once)
        patch.setattr("gpucourse.course.written.read_document", read_document_once)
        yield


@pytest.fixture
def learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Learning:
    return Learning(tmp_path, monkeypatch, capfd)


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge
