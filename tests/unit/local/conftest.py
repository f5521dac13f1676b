"""What tests of simulated nodes share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the nodes, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
