"""The command lines of Terraform, built by python-terraform, and its environment. Nothing is run or written here.

Only the builder of that package is used, on an object of this module. The package's own `Terraform` reads a state file when it
is created, and turns a dict of variables into a temporary file that is left behind. Here, a dict causes an AttributeError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from python_terraform import IsFlagged, Terraform

_KEPT = {
    "TF_APPEND_USER_AGENT",
    "TF_CLI_CONFIG_FILE",
    "TF_ENCRYPTION",
    "TF_PLUGIN_CACHE_DIR",
    "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE",
    "TF_REGISTRY_CLIENT_TIMEOUT",
    "TF_REGISTRY_DISCOVERY_RETRY",
}

# The AWS provider allocates 300 MB of objects at its start and frees few of them. If Go collects garbage a quarter as often,
# every Terraform command uses a fifth less processor time and 40 MB more memory.
_GARBAGE = "400"


def terraform_environment(environ: Mapping[str, str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return `environ` plus `extra`, without the variables that control Terraform.

    Those variables set arguments, variables, the workspace, the data folder or logging. Variables about credentials and the
    source of providers are kept.
    """
    variables = {name: value for name, value in environ.items() if _harmless(name)}
    return {"GOGC": _GARBAGE, **variables, "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1", **(extra or {})}


def _harmless(name: str) -> bool:
    return not name.startswith("TF_") or name in _KEPT or name.startswith("TF_TOKEN_")


@dataclass(frozen=True)
class Commands:
    """Build the commands for one Terraform binary.

    `lock_wait_s`: how long each command waits while another Terraform process locks the state.
    """

    argv: tuple[str, ...]
    lock_wait_s: float = 120.0

    def init(self, plugin_dir: Path | None = None) -> list[str]:
        """Return the command that fetches providers; with `plugin_dir`, only from that folder."""
        return self._build_command("init", no_color=IsFlagged, input=False, plugin_dir=plugin_dir)

    def plan(self, out: str, replace: Sequence[str] = ()) -> list[str]:
        """Return the command that writes the plan to the file `out`. The plan recreates the resources in `replace`."""
        return self._build_command("plan", **self._flag_changes(), out=out, replace=list(replace))

    def apply(self, plan: str) -> list[str]:
        """Return the command that carries out exactly the saved plan, without asking for approval."""
        return self._build_command("apply", plan, **self._flag_changes())

    def destroy(self) -> list[str]:
        """Return the command that removes everything in the state, without a refresh. Resources that are already gone count as
        removed.

        With a refresh, the removal would take 50 % longer, and it would fail if a data source of the stack could no longer be
        read.
        """
        return self._build_command("destroy", **self._flag_changes(), auto_approve=IsFlagged, refresh=False)

    def push_state(self, file: str) -> list[str]:
        """Return the command that makes the state in `file` the stack's state. Terraform refuses a state older than the
        current one."""
        return self._build_command("state push", file, lock_timeout=f"{self.lock_wait_s:.0f}s")

    def _flag_changes(self) -> dict[str, Any]:
        return {
            "json": IsFlagged,
            "no_color": IsFlagged,
            "input": False,
            "lock_timeout": f"{self.lock_wait_s:.0f}s",
        }

    def _build_command(self, command: str, *arguments: str, **options: Any) -> list[str]:
        command_line = Terraform.generate_cmd_string(
            SimpleNamespace(terraform_bin_path=self.argv[0]), command, *arguments, **options
        )
        return [*self.argv, *command_line[1:]]
