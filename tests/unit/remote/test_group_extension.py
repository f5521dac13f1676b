"""The extension that torch loads in each rank: it notes the process groups, and changes nothing else."""

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


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch.distributed as far as the extension looks at it: a group of two is made, or refused."""

    def init_process_group(backend: str, *, world_size: int = 2) -> str:
        """As torch documents it."""
        if backend == "none":
            raise ValueError(backend)
        module.size = world_size
        return backend

    module: Any = ModuleType("torch.distributed")
    module.init_process_group, module.get_world_size = init_process_group, lambda: module.size
    mesh: Any = ModuleType("torch.distributed.device_mesh")
    mesh.init_process_group = init_process_group
    for name in ("torch.distributed", "torch.distributed.device_mesh"):
        monkeypatch.setitem(sys.modules, name, module if name == "torch.distributed" else mesh)
    monkeypatch.delitem(sys.modules, "torch.distributed.distributed_c10d", raising=False)
    return module


def test_each_group_is_noted_and_a_refused_one_is_not(fake_torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "0.group"
    monkeypatch.setenv(rank.GROUP_FILE, str(path))
    load().note_groups()
    assert rank.largest_group(str(path)) == 0
    assert fake_torch.init_process_group("gloo") == "gloo"
    assert sys.modules["torch.distributed.device_mesh"].init_process_group("gloo", world_size=1) == "gloo"
    assert path.read_text() == "0\n2\n1\n"
    assert rank.largest_group(str(path)) == 2
    assert fake_torch.init_process_group.__doc__ == "As torch documents it."
    with pytest.raises(ValueError, match="none"):
        fake_torch.init_process_group("none")
    assert path.read_text() == "0\n2\n1\n"


def test_outside_a_run_and_where_nothing_can_be_written_scripts_go_on(
    fake_torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = fake_torch.init_process_group
    monkeypatch.delenv(rank.GROUP_FILE, raising=False)
    load().note_groups()
    assert fake_torch.init_process_group is original
    monkeypatch.setenv(rank.GROUP_FILE, str(tmp_path / "gone/0.group"))
    load().note_groups()
    assert fake_torch.init_process_group("gloo") == "gloo"
    assert "the size of the process group is not kept" in capsys.readouterr().err
    assert rank.largest_group(str(tmp_path / "gone/0.group")) is None


def test_torch_finds_it_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    (entry,) = entry_points(group="torch.backends", name="gpucourse_groups")
    assert entry.value == "gpucourse_groups:note_groups"
