"""The existing resources, read from Terraform's state file without starting Terraform."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpucourse.errors import InfrastructureError


def addresses(state: Path) -> list[str]:
    """Return the addresses of all resources in the state; none if there is no state yet.

    Raises InfrastructureError if the file is not a state: its content is never guessed, and the file is never overwritten.
    """
    return [address for address, _ in _read_instances(state)]


def values(state: Path) -> set[str]:
    """Return the ids and names of all resources in the state: every text among their attributes.

    Raises InfrastructureError if the file is not a state.
    """
    texts = (value for _, attributes in _read_instances(state) for value in attributes.values())
    return {value for value in texts if isinstance(value, str) and value}


def _read_instances(state: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the address and the attributes of every resource."""
    try:
        data = state.read_bytes()
    except FileNotFoundError:
        return []
    if not data.strip():  # Terraform creates the file before it has content
        return []
    try:
        return list(_list_instances(json.loads(data)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        backup = state.with_name(state.name + ".backup")
        cure = f"cp '{backup}' '{state}' restores the previous one" if backup.is_file() else "restore it from a backup"
        raise InfrastructureError(f"{state} is damaged: {error}", hint=f"{cure}, then type the command again") from error


def _list_instances(state: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for resource in state["resources"]:
        if resource["mode"] != "managed":
            continue
        prefix = f"{resource['module']}." if resource.get("module") else ""
        for instance in resource["instances"]:
            key = instance.get("index_key")
            place = "" if key is None else f"[{json.dumps(key)}]"
            yield f"{prefix}{resource['type']}.{resource['name']}{place}", instance.get("attributes", {})
