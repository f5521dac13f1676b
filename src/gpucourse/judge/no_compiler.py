"""Keeping torch's compiler out of the process that judges: the first optimizer and the first DDP of a process import it.

It would add 2 to 4 seconds to each verdict, and no part compiles anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class NoCompiler(ModuleType):
    """Replaces torch._dynamo: every attribute is another of these, a call does nothing, no function is compiled.

    It is false if torch reads it as a setting.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []  # a package, so that torch can import its submodules

    def disable(self, function: Callable[..., Any] | None = None, *_: Any, **__: Any) -> Any:
        """Return the function unchanged or, as a decorator with arguments, a decorator that does so."""
        return function if function is not None else self.disable

    def __getattr__(self, name: str) -> NoCompiler:
        if name.startswith("__"):
            raise AttributeError(name)
        return NoCompiler(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> None:
        """Do nothing: torch calls a switch of the compiler."""

    def __bool__(self) -> bool:
        """Return False: the setting that it replaces is off."""
        return False

    def __contains__(self, _item: object) -> bool:
        """Return False: it contains nothing."""
        return False

    def __instancecheck__(self, _item: object) -> bool:
        """Return False: nothing is an instance of a class that it replaces."""
        return False


def leave_compiler_out() -> None:
    """Prevent imports of torch's compiler in this process. Do nothing if it is already imported."""
    import torch

    if "torch._dynamo" not in sys.modules:
        sys.modules["torch._dynamo"] = compiler = NoCompiler("torch._dynamo")
        sys.modules["torch._dynamo.config"] = compiler.config  # sharded tensors (DTensor) import it by this name
        setattr(torch, "_dynamo", compiler)  # noqa: B010  # torch also reads it there
