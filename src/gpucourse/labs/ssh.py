"""What plain `ssh` needs to reach a node: the configuration that `deploy` wrote, and the node's name in it."""

from __future__ import annotations

from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import MissingError, UnknownName
from gpucourse.runs.prepare import find_deployed_lab


def connection(context: Context, module_id: str, node: str) -> tuple[Path, str]:
    """Return the SSH configuration of a module's lab and the node's name. `node` is `1` or `node1`.

    Raises MissingError if the lab is not deployed, UnknownName for a node that it does not have.
    """
    deployment = find_deployed_lab(context, context.catalog.module(module_id))
    names = [node.name for node in deployment.inventory.nodes] if deployment.inventory else []
    name = names[int(node)] if node.isdecimal() and int(node) < len(names) else node
    if name not in names:
        raise UnknownName("node", node, names)
    config = context.paths.stack(deployment.stack).ssh_config
    if not config.is_file():
        raise MissingError(f"{config} is gone", hint=f"gpucourse deploy {deployment.module}")
    return config, name
