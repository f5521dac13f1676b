"""What several tests of exercises share: torch, the shared files as a script imports them, and the engine of bonus B."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gpucourse.course.locate import find_course
from tests.parts import need, need_module
from tests.unit.exercises.scripts import beside_the_script

BESIDE = ("bench", "gpus", "language_models", "engines", "ceilings")


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    return need_module("torch")


@pytest.fixture
def shared_files(torch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield the shared files as a script imports them."""
    monkeypatch.syspath_prepend(str(find_course({}).exercises / "shared"))
    for name in BESIDE:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield SimpleNamespace(torch=torch, **{name: importlib.import_module(name) for name in BESIDE})
    for name in BESIDE:
        sys.modules.pop(name, None)


@pytest.fixture(scope="session")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the engine that bonus B traces."""
    need("cc")
    if Path("/dev/nvidia0").exists():
        pytest.skip("the stand-in is refused where there is a GPU")
    return Path(beside_the_script("B-ebpf-tracing", "stand_in").build(tmp_path_factory.mktemp("cache")))
