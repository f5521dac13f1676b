"""A node that is a separate machine, from its host's side: its port, and what its machine is told."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

from gpucourse.local import health
from gpucourse.local.machine_node import MachineNode
from gpucourse.local.namespace_client import NamespaceClient
from tests.unit.local.scripted_host import make_spec


class Namespace(NamespaceClient):
    """A namespace whose machine sends a greeting and hangs up. It keeps what it was asked."""

    alive = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def ask(self, verb: str, **document: object) -> dict[str, Any]:
        self.asked.append((verb, document))
        return {}

    async def dial(self, address: str, port: int) -> socket.socket:
        near, far = socket.socketpair()
        far.sendall(f"{address} {port}".encode())
        far.close()
        near.setblocking(False)
        return near


def test_machine_node_leads_its_port_to_the_sshd_of_the_machine(tmp_path: Path) -> None:
    namespace = Namespace(tmp_path)
    spec = make_spec("u1", addresses={"node0": "10.77.0.10"})
    node = MachineNode(tmp_path, spec, namespace)

    async def live() -> bytes:
        await node.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", int(str(node.describe()["port"])))
        text = await reader.read()
        writer.close()
        await node.cut_power()
        await node.open()
        await node.end()
        return text

    assert asyncio.run(live()) == b"10.77.0.10 22"
    assert [verb for verb, _ in namespace.asked] == ["on", "off", "on", "off"]
    machine: Any = namespace.asked[0][1]["machine"]
    assert (machine["name"], machine["address"]) == ("node0", "10.77.0.10")
    assert f"VersionAddendum {health.banner('u1', 'node0')}\n" in machine["sshd_config"]
    assert "PasswordAuthentication no\n" in machine["sshd_config"]
