"""Requests to the namespace while no machine is on; with machines, in tests/system/test_slurm_daemons.py."""

from __future__ import annotations

import json
import socket

import pytest

from gpucourse.local.machines.namespace import MachineNamespace


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ({"verb": "off", "name": "node0"}, {"was_on": False}),
        ({"verb": "check"}, {"found": {}}),
        ({"verb": "run", "name": "node0", "argv": ["true"]}, {"error": "node0 is off"}),
        ({"verb": "socket", "name": "node0"}, {"error": "node0 is off"}),
    ],
)
def test_hear_answers_each_request_by_its_number(request_: dict[str, object], answer: dict[str, object]) -> None:
    client, server = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with client, server:
        client.send(json.dumps({"id": 3, **request_}).encode())
        MachineNamespace(server, "folder")._hear()
        assert json.loads(client.recv(1000)) == {"id": 3, **answer}
