from __future__ import annotations

from pathlib import Path

import pytest

from tests.learning import Learning


@pytest.fixture
def learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Learning:
    return Learning(tmp_path, monkeypatch, capfd)
