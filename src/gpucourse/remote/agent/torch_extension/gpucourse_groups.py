"""Notes the size of each process group that a rank makes, so that the world of a run can be compared with its plan.

torch 2.5 and later load this module themselves, through the entry point `torch.backends` next to it: nothing is imported for a
script that does not import torch, and no script is changed. A line with 0 means that torch was imported; every other line is
the size of a group. The module must run with the Python of any node.
https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html

A group whose ranks torch only simulates is not a group of the run's ranks: a script makes it to predict something, such as the
memory that one rank among 64 needs. For such a group, a word is written instead of a size.

The module wraps the function with which torch stores a new group, not init_process_group itself: if that fails, its traceback
must contain only lines of the script and of torch.
"""

from __future__ import annotations

import os
import sys
from typing import Any

FILE = "GPUCOURSE_GROUP_FILE"
MODULE, FUNCTION = "torch.distributed.distributed_c10d", "_update_default_pg"
SIMULATED = {"fake", "threaded"}
"""The backends of torch whose ranks are not processes."""


def note_groups() -> None:
    """Record that torch was imported and, from now on, the size of every default process group that this process makes."""
    path = os.environ.get(FILE)
    module: Any = sys.modules.get(MODULE)
    keep = getattr(module, FUNCTION, None)
    if path is None or keep is None:  # not a rank of a run, or a torch that keeps its groups in another way
        return
    _note(path, 0)

    def keep_and_note(group: Any) -> None:
        keep(group)
        if group is not None:
            _note(path, "simulated" if _get_backend(module, group) in SIMULATED else group.size())

    setattr(module, FUNCTION, keep_and_note)


def _get_backend(module: Any, group: Any) -> str:
    """Return the name of a group's backend; empty if torch has none."""
    try:
        return str(module.get_backend(group))
    except (AttributeError, ValueError):
        return ""


def _note(path: str, size: int | str) -> None:
    try:
        with open(path, "a", encoding="ascii") as file:
            file.write(f"{size}\n")
    except OSError as error:  # the script must run all the same
        sys.stderr.write(f"gpucourse: the size of the process group is not recorded: {error}\n")
