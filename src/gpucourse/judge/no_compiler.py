"""Keeps torch's compiler out of the process that judges: the first optimizer and the first DDP of a process import it.

It would take 2 to 4 seconds of each verdict, and no part compiles anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class NoCompiler(ModuleType):
    """Stands where torch._dynamo would: every name in it is another of these, a call does nothing, no function is compiled.

    It is false where torch takes it for a setting.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []  # a package, so that torch can import what is in it

    def disable(self, function: Callable[..., Any] | None = None, *_: Any, **__: Any) -> Any:
        """The function as it is; as a decorator with arguments, what gives it back."""
        return function if function is not None else self.disable

    def __getattr__(self, name: str) -> NoCompiler:
        if name.startswith("__"):
            raise AttributeError(name)
        return NoCompiler(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> None:
        """Do nothing: a switch of the compiler was called."""

    def __bool__(self) -> bool:
        """Say no: whatever it stands for is switched off."""
        return False

    def __contains__(self, _item: object) -> bool:
        """Say no: nothing is in it."""
        return False

    def __instancecheck__(self, _item: object) -> bool:
        """Say no: where it stands for a class, nothing was made of that."""
        return False


def leave_compiler_out() -> None:
    """From now on nothing in this process imports torch's compiler. Does nothing if it is imported already."""
    import torch

    if "torch._dynamo" not in sys.modules:
        sys.modules["torch._dynamo"] = compiler = NoCompiler("torch._dynamo")
        sys.modules["torch._dynamo.config"] = compiler.config  # sharded tensors (DTensor) import it by this name
        setattr(torch, "_dynamo", compiler)  # noqa: B010  # torch reads it there, too
