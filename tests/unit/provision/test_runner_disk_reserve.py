from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import StorageError
from gpucourse.provision import runner


def test_hold_reserve_gives_the_ballast_up_once_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with runner.hold_reserve(tmp_path) as reserve:
        assert [path.stat().st_size for path in tmp_path.iterdir()] == [runner.BALLAST]
        monkeypatch.setattr(runner, "_free", lambda _folder: runner.SCARCE - 1)
        assert [reserve.check(), reserve.check()] == [True, False]
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(StorageError, match="no space left in"), runner.hold_reserve(tmp_path):
        pytest.fail("nothing may begin on a full disk")
    assert list(tmp_path.iterdir()) == []
