"""A learner in a small course; one judge for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.judge.client import Judge
from tests.learning import Learning


@pytest.fixture
def learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Learning:
    return Learning(tmp_path, monkeypatch, capfd)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge
