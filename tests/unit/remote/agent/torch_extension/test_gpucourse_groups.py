"""The extension that torch loads in each rank: it records the process groups and changes nothing else."""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpucourse.remote import jobs
from gpucourse.remote.agent import rank

FOLDER = Path(jobs.__file__).parent / "agent/torch_extension"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("gpucourse_groups", FOLDER / "gpucourse_groups.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Group:
    """A process group of two ranks."""

    def size(self) -> int:
        return 2


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a stand-in for torch.distributed.distributed_c10d, with the parts that the extension uses."""
    module: Any = ModuleType("torch.distributed.distributed_c10d")

    def keep(group: object) -> None:
        module.group = group

    module._update_default_pg = keep
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_note_groups_notes_the_size_of_each_group(fake_torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "0.group"
    monkeypatch.setenv(rank.GROUP_FILE, str(path))
    load().note_groups()
    assert rank.largest_group(str(path)) == 0
    for group in (Group(), None):
        fake_torch._update_default_pg(group)
        assert fake_torch.group is group
    assert path.read_text() == "0\n2\n"
    assert rank.largest_group(str(path)) == 2


@pytest.mark.parametrize(("backend", "size"), [("fake", None), ("threaded", None), ("gloo", 2)])
def test_note_groups_leaves_out_the_size_of_simulated_groups(
    fake_torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, size: int | None
) -> None:
    path = tmp_path / "0.group"
    monkeypatch.setenv(rank.GROUP_FILE, str(path))
    fake_torch.get_backend = lambda _group: backend
    load().note_groups()
    fake_torch._update_default_pg(Group())
    assert rank.largest_group(str(path)) == size


def test_note_groups_changes_nothing_outside_a_run(
    fake_torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = fake_torch._update_default_pg
    monkeypatch.delenv(rank.GROUP_FILE, raising=False)
    load().note_groups()
    assert fake_torch._update_default_pg is original
    monkeypatch.setenv(rank.GROUP_FILE, str(tmp_path / "gone/0.group"))
    load().note_groups()
    fake_torch._update_default_pg(Group())
    assert "the size of the process group is not recorded" in capsys.readouterr().err
    assert rank.largest_group(str(tmp_path / "gone/0.group")) is None


def test_gpucourse_groups_is_found_by_torch_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    (entry,) = entry_points(group="torch.backends", name="gpucourse_groups")
    assert entry.value == "gpucourse_groups:note_groups"
