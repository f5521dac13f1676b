"""Kernels built once for all tests of a module, and the names of the emulator's Python side."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cuda_emulator import import_emulator


@pytest.fixture(scope="session")
def emulator() -> Any:
    return import_emulator()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the emulator's own object is built once for all tests."""
    shared = os.environ.get("XDG_CACHE_HOME")
    return Path(shared) / "gpucourse" / "emulator" if shared else tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def build(emulator: Any, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Build a text as `kernels.cu`, by default for runs that watch every block, which takes the compiler half of the time."""

    def build_text(text: str, name: str = "kernels.cu", **options: Any) -> Any:
        folder = tmp_path_factory.mktemp("build")
        source = folder / name
        source.write_text(text, encoding="utf-8")
        return emulator.build([source], folder=folder, **{"cache": cache, "every": True} | options)

    return build_text
