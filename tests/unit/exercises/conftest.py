"""What several tests of exercises share: torch, and the shared files as a script imports them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gpucourse.course.locate import find_course
from tests.parts import need_module

BESIDE = ("bench", "gpus", "language_models", "engines", "ceilings")


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    return need_module("torch")


@pytest.fixture
def shared_files(torch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The shared files as a script imports them."""
    monkeypatch.syspath_prepend(str(find_course({}).exercises / "shared"))
    for name in BESIDE:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield SimpleNamespace(torch=torch, **{name: importlib.import_module(name) for name in BESIDE})
    for name in BESIDE:
        sys.modules.pop(name, None)
