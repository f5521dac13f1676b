"""The Terraform output `nodes`, through which every stack describes its nodes to the course. It is read strictly.

`nodes` is a list with one object for each node, with the keys of model.node.Node (`host_key` may be left out). The entry is
null if the node's resource exists but the node did not start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

from gpucourse.errors import InfrastructureError
from gpucourse.model.node import Inventory, Node
from gpucourse.outside.documents import convert
from gpucourse.outside.names import OutsideError

_REQUIRED = {field.name for field in fields(Node) if field.default is MISSING}


def inventory(stack: str, outputs: dict[str, Any] | None) -> Inventory:
    """Return the nodes in Terraform's outputs (as in `terraform output -json`), head first.

    Raises InfrastructureError that names the missing or wrong field, or the nodes that did not start.
    """
    entry = (outputs or {}).get("nodes")
    entries = entry.get("value") if isinstance(entry, dict) else None
    if not isinstance(entries, list) or not entries:
        raise _refuse("is not a list with at least one node")
    absent = [str(number) for number, node in enumerate(entries) if node is None]
    if absent:
        raise InfrastructureError(
            f"{len(absent)} of {len(entries)} nodes of {stack} did not start: number {', '.join(absent)}, counted from 0",
            hint="type `gpucourse deploy` again: it builds what is missing",
        )
    try:
        nodes = convert(entries, list[Node])
    except OutsideError as error:
        raise _refuse(f"is not valid: {error}") from error
    _check(nodes)
    return Inventory(stack=stack, nodes=tuple(sorted(nodes, key=lambda node: node.role != "head")))


def _check(nodes: Sequence[Node]) -> None:
    """Check that values are in range and that the nodes belong together. Raises InfrastructureError if they do not."""
    for node in nodes:
        if empty := sorted(name for name in _REQUIRED if getattr(node, name) == ""):
            raise _refuse(f"has no {empty[0]} for {node.name or 'a node'}")
        if node.port not in range(1, 65536) or node.gpus not in range(1025):
            raise _refuse(f"has the port {node.port} and {node.gpus} GPUs for {node.name}")
    heads = sum(node.role == "head" for node in nodes)
    if heads != 1:
        raise _refuse(f"must have exactly one node with the role head, not {heads}")
    for place, count in Counter(place for node in nodes for place in (node.name, f"{node.address}:{node.port}")).items():
        if count > 1:
            raise _refuse(f"has {count} nodes called {place}")


def _refuse(subject: str) -> InfrastructureError:
    return InfrastructureError(
        f"the stack's Terraform output `nodes` {subject}",
        hint="the stack does not fit this version of gpucourse: `gpucourse destroy` removes it, then `gpucourse deploy` "
        "rebuilds it",
    )
