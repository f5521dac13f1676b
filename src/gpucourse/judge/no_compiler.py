"""Keep torch's compiler out of the judging process. The first optimizer or DDP in a process would import it.

The import would add 2 to 4 seconds to each verdict, although hardly any part compiles anything. The judge of a part that
compiles calls `bring_compiler_in`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class _NoCompiler(ModuleType):
    """A stand-in for torch._dynamo: every attribute is another stand-in, a call does nothing, and no function is compiled.

    As a condition, it is false, because torch reads some attributes as settings.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []  # a package, so that torch can import its submodules

    def disable(self, function: Callable[..., Any] | None = None, *_: Any, **__: Any) -> Any:
        """Return the function unchanged. Without a function, return a decorator that does the same."""
        return function if function is not None else self.disable

    def __getattr__(self, name: str) -> _NoCompiler:
        if name.startswith("__"):
            raise AttributeError(name)
        return _NoCompiler(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> None:
        """Do nothing. Torch calls this instead of its compiler."""

    def __bool__(self) -> bool:
        """Return False, because every setting of the compiler is off."""
        return False

    def __contains__(self, _item: object) -> bool:
        """Return False, because the stand-in contains nothing."""
        return False

    def __instancecheck__(self, _item: object) -> bool:
        """Return False, because nothing is an instance of the replaced class."""
        return False


def leave_compiler_out() -> None:
    """Prevent imports of torch's compiler in this process, unless it is already imported."""
    import torch

    if "torch._dynamo" not in sys.modules:
        sys.modules["torch._dynamo"] = compiler = _NoCompiler("torch._dynamo")
        sys.modules["torch._dynamo.config"] = compiler.config  # sharded tensors (DTensor) import it by this name
        setattr(torch, "_dynamo", compiler)  # noqa: B010  # torch also reads it there


def bring_compiler_in() -> None:
    """Import torch's compiler in this process, even if it was left out. A judge calls this before it uses `torch.compile`."""
    import torch

    for name in [name for name, module in sys.modules.items() if isinstance(module, _NoCompiler)]:
        del sys.modules[name]
    if isinstance(vars(torch).get("_dynamo"), _NoCompiler):
        delattr(torch, "_dynamo")
    import torch._dynamo
