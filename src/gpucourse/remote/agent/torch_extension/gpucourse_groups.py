"""Record the size of each process group that a rank makes, so that the actual world size of a run can be compared with its
plan.

torch 2.5 and later load this module themselves, through the entry point `torch.backends` next to it. No script is changed, and
nothing is imported for a script that does not import torch.
https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html

Each rank writes a file with one line for each event: 0 when torch is imported, then the size of each group. If torch only
simulates the ranks of a group, the line is the word `simulated`. Such a group is not made of the run's ranks: a script uses it
to predict something, such as the memory of one rank among 64.

The module wraps the function with which torch stores a new group, not init_process_group itself. If init_process_group fails,
its traceback must contain only lines of the script and of torch.

The module must run on any Python version that a node has.
"""

from __future__ import annotations

import os
import sys
from typing import Any

FILE = "GPUCOURSE_GROUP_FILE"
MODULE, FUNCTION = "torch.distributed.distributed_c10d", "_update_default_pg"
SIMULATED = {"fake", "threaded"}
"""The backends of torch with simulated ranks, which are not processes."""


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
    """Return the name of a group's backend, or an empty string if torch has none."""
    try:
        return str(module.get_backend(group))
    except (AttributeError, ValueError):
        return ""


def _note(path: str, size: int | str) -> None:
    try:
        with open(path, "a", encoding="ascii") as file:
            file.write(f"{size}\n")
    except OSError as error:  # the script must run anyway
        sys.stderr.write(f"gpucourse: the size of the process group is not recorded: {error}\n")
