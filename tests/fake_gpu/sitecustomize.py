"""Give torch a GPU. Python imports this file when it starts if this folder is on PYTHONPATH; every process that imports torch
then finds a GPU.

Most processes of a node do not import torch, which takes 1.6 s of processor time.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class TorchFinder(MetaPathFinder):
    """Find torch as usual, and import the GPU after it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of torch; None for every other module."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = find_spec("torch")
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_both(module: ModuleType) -> None:
            execute(module)
            import_module("gpu_on_processor")

        spec.loader.exec_module = execute_both  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, TorchFinder())
