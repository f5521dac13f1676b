"""The environment of Terraform: no variable in it may change what a stack does."""

from __future__ import annotations

from collections.abc import Mapping

_KEPT = {
    "TF_APPEND_USER_AGENT",
    "TF_CLI_CONFIG_FILE",
    "TF_ENCRYPTION",
    "TF_PLUGIN_CACHE_DIR",
    "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE",
    "TF_REGISTRY_CLIENT_TIMEOUT",
    "TF_REGISTRY_DISCOVERY_RETRY",
}

# The AWS provider allocates 300 MB of objects at its start and frees few. If Go collects garbage a quarter as often, every
# Terraform command uses a fifth less processor time, for 40 MB more.
_GARBAGE = "400"


def terraform_environment(environ: Mapping[str, str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return `environ` without the variables that control Terraform (arguments, variables, workspace, data folder, logging),
    except those about the source of its providers and credentials; plus `extra`."""
    kept = {name: value for name, value in environ.items() if _harmless(name)}
    return {"GOGC": _GARBAGE, **kept, "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1", **(extra or {})}


def _harmless(name: str) -> bool:
    return not name.startswith("TF_") or name in _KEPT or name.startswith("TF_TOKEN_")
