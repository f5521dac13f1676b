"""A node from its host's side: its description, its folder, its port."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from gpucourse.local import layout
from gpucourse.local.hosted import HostedNode, Spec, load_stored_specs, prepare
from tests.unit.local.scripted_host import make_spec


@pytest.mark.parametrize("name", ["../precious", "notes", "node0/home", "node", ""])
def test_read_refuses_a_description_without_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a node"):
        make_spec("u1", name=name)
    with pytest.raises(ValueError, match="role"):
        Spec.read({"name": "node0"})


def test_prepare_keeps_what_a_node_has_and_removes_an_earlier_stack(tmp_path: Path) -> None:
    keys = layout.home(tmp_path, "node0") / ".ssh" / "authorized_keys"
    assert prepare(tmp_path, make_spec("u1")) == 0
    keys.write_text("ssh-ed25519 mine")
    host_key = layout.host_key(tmp_path, "node0").read_bytes()
    assert prepare(tmp_path, make_spec("u1")) == 0
    assert keys.read_text().splitlines() == ["ssh-ed25519 mine", "ssh-ed25519 A"]
    assert layout.host_key(tmp_path, "node0").read_bytes() == host_key
    layout.write_json(layout.spec_file(tmp_path, "node0"), {"uid": "u1", "port": 7})
    assert prepare(tmp_path, make_spec("u1")) == 7
    assert prepare(tmp_path, make_spec("u2")) == 0
    assert keys.read_text().splitlines() == ["ssh-ed25519 A"]


def test_open_listens_on_the_earlier_port_unless_it_is_taken(tmp_path: Path) -> None:
    async def open_node() -> tuple[int, str]:
        node = HostedNode(tmp_path, make_spec("u1"))
        await node.open()
        described = node.describe()
        await node.end()
        return int(str(described["port"])), str(described["host_key"])

    first = asyncio.run(open_node())
    assert asyncio.run(open_node()) == first
    with socket.create_server(("127.0.0.1", first[0])):
        port = asyncio.run(open_node())
    assert (port[0] != first[0], port[1]) == (True, first[1])
    assert load_stored_specs(tmp_path, "u1") == [make_spec("u1")]
    assert load_stored_specs(tmp_path, "u2") == []
