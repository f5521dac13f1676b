"""Terraform's argument lists, as python-terraform builds them: one list a command, nothing run, nothing written.

Only the builder of that package is used, and on an object of our own: its `Terraform` reads a state file when it is made,
and turns a dict of variables into a temporary file that is left behind. Here a dict causes an AttributeError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from python_terraform import IsFlagged, Terraform


@dataclass(frozen=True)
class Commands:
    """Builds the commands for one Terraform. `lock_wait_s`: how long each waits while another one holds the state."""

    argv: tuple[str, ...]
    parallelism: int = 10
    lock_wait_s: float = 120.0

    def init(self, plugin_dir: Path | None = None) -> list[str]:
        """Fetch providers, from `plugin_dir` alone where it is given."""
        return self._build_command("init", no_color=IsFlagged, input=False, plugin_dir=plugin_dir)

    def plan(self, out: str, replace: Sequence[str] = ()) -> list[str]:
        """Plan into the file `out`; the resources in `replace` are created again."""
        return self._build_command("plan", **self._flag_changes(), out=out, replace=list(replace))

    def apply(self, plan: str) -> list[str]:
        """Do exactly what the plan file says; a saved plan needs no approval."""
        return self._build_command("apply", plan, **self._flag_changes())

    def destroy(self) -> list[str]:
        """Remove everything in the state, whatever happened to it since: what is gone already counts as removed. Asking
        for each resource first takes half as long again, and fails if a data source of the stack can no longer be read."""
        return self._build_command("destroy", **self._flag_changes(), auto_approve=IsFlagged, refresh=False)

    def push_state(self, file: str) -> list[str]:
        """Make the state in `file` the stack's state; Terraform refuses one that is older than what it has."""
        return self._build_command("state push", file, lock_timeout=f"{self.lock_wait_s:.0f}s")

    def _flag_changes(self) -> dict[str, Any]:
        return {
            "json": IsFlagged,
            "no_color": IsFlagged,
            "input": False,
            "lock_timeout": f"{self.lock_wait_s:.0f}s",
            "parallelism": self.parallelism,
        }

    def _build_command(self, command: str, *arguments: str, **options: Any) -> list[str]:
        built = Terraform.generate_cmd_string(_Program(self.argv[0]), command, *arguments, **options)
        return [*self.argv, *built[1:]]


@dataclass(frozen=True)
class _Program:
    terraform_bin_path: str
