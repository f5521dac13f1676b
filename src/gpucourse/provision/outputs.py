"""The contract between every stack and the rest of the course: its Terraform output `nodes`, read strictly.

`nodes` is a list with one object for each node, with the keys of model.node.Node (`host_key` may be left out). A node that has
a resource but did not start is null.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import MISSING, fields
from typing import Any, get_args

from gpucourse.errors import InfrastructureError
from gpucourse.model.node import Inventory, Node, Role

_NUMBERS = {"port": range(1, 65536), "gpus": range(1025)}
_WORDS: dict[str, tuple[str, ...]] = {"role": get_args(Role)}
_MAY_BE_EMPTY = {"host_key", "proxy"}
_REQUIRED = {field.name for field in fields(Node) if field.default is MISSING}
_KNOWN = {field.name for field in fields(Node)} - {"other_host_keys"}


def inventory(stack: str, outputs: dict[str, Any] | None) -> Inventory:
    """Return the nodes in Terraform's outputs (as in `terraform output -json`), head first.

    Raises InfrastructureError that names the first field that is missing or wrong, or the nodes that did not start.
    """
    entry = (outputs or {}).get("nodes")
    if not isinstance(entry, dict):
        raise _wrong("nodes", "is missing")
    if entry.get("sensitive"):
        raise _wrong("nodes", "is marked sensitive, so it cannot be read")
    listed = entry.get("value")
    if not isinstance(listed, list) or not listed:
        raise _wrong("nodes", f"must be a list with at least one node, not {_quote_value(listed)}")
    absent = [str(number) for number, node in enumerate(listed) if node is None]
    if absent:
        raise InfrastructureError(
            f"{len(absent)} of {len(listed)} nodes of {stack} did not come up: number {', '.join(absent)}, counted from 0",
            hint="type `gpucourse deploy` again: it builds what is missing",
        )
    nodes = [_node(f"nodes[{number}]", value) for number, value in enumerate(listed)]
    _consistent(nodes)
    return Inventory(stack=stack, nodes=tuple(sorted(nodes, key=lambda node: node.role != "head")))


def _node(where: str, value: Any) -> Node:
    if not isinstance(value, dict):
        raise _wrong(where, f"must be an object, not {_quote_value(value)}")
    for name in sorted(_REQUIRED - value.keys()):
        raise _wrong(f"{where}.{name}", "is missing")
    for name in sorted(value.keys() - _KNOWN):
        raise _wrong(f"{where}.{name}", "is not a field of a node")
    return Node(**{name: _validate_value(f"{where}.{name}", name, field) for name, field in value.items()})


def _validate_value(where: str, name: str, field: Any) -> Any:
    if name in _NUMBERS:
        if type(field) is not int or field not in _NUMBERS[name]:
            allowed = _NUMBERS[name]
            raise _wrong(where, f"must be a whole number from {allowed[0]} to {allowed[-1]}, not {_quote_value(field)}")
    elif not isinstance(field, str):
        raise _wrong(where, f"must be text, not {_quote_value(field)}")
    elif not field and name not in _MAY_BE_EMPTY:
        raise _wrong(where, "is empty")
    elif name in _WORDS and field not in _WORDS[name]:
        raise _wrong(where, f"must be {' or '.join(_WORDS[name])}, not {_quote_value(field)}")
    return field


def _consistent(nodes: list[Node]) -> None:
    heads = sum(node.role == "head" for node in nodes)
    if heads != 1:
        raise _wrong("nodes", f"must have exactly one node with the role head, not {heads}")
    for name, count in Counter(node.name for node in nodes).items():
        if count > 1:
            raise _wrong("nodes", f"has {count} nodes with the name {name}")
    for (address, port), count in Counter((node.address, node.port) for node in nodes).items():
        if count > 1:
            raise _wrong("nodes", f"has {count} nodes at {address}:{port}")


def _wrong(where: str, what: str) -> InfrastructureError:
    return InfrastructureError(
        f"the stack's Terraform output `{where}` {what}",
        hint="the stack does not fit this gpucourse: `gpucourse destroy` removes it, then `gpucourse deploy` rebuilds it",
    )


def _quote_value(value: Any) -> str:
    return "null" if value is None else repr(value)[:80]
