"""Notes how large the process groups are that a rank makes, so that the world of a run can be compared with its plan.

torch 2.5 and later load this by themselves, by the entry point `torch.backends` beside it: nothing is imported for a script
that does not import torch, and none is changed. A line with 0 says that torch was imported, each other line is the size of a
group. It must run with the Python of any node.
https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

FILE = "GPUCOURSE_GROUP_FILE"
MODULES = ("torch.distributed", "torch.distributed.distributed_c10d", "torch.distributed.device_mesh")


def note_groups() -> None:
    """Note that torch is here, and from now on the size of every default process group that this process makes."""
    path = os.environ.get(FILE)
    original = getattr(sys.modules.get("torch.distributed"), "init_process_group", None)
    if path is None or original is None:  # no rank of a run, or a build of torch without torch.distributed
        return
    _note(path, 0)
    replacement = _wrap(original, path)
    for name in MODULES:
        module: Any = sys.modules.get(name)
        if getattr(module, "init_process_group", None) is original:
            module.init_process_group = replacement


def _wrap(original: Any, path: str) -> Any:
    @functools.wraps(original)
    def init_process_group(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        _note(path, sys.modules["torch.distributed"].get_world_size())
        return result

    return init_process_group


def _note(path: str, size: int) -> None:
    try:
        with open(path, "a", encoding="ascii") as file:
            file.write(f"{size}\n")
    except OSError as error:  # the script is to run all the same
        sys.stderr.write(f"gpucourse: the size of the process group is not kept: {error}\n")
