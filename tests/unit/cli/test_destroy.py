"""The command `destroy`: a lab that does not exist, a lab that leaves something behind, an interrupt."""

from __future__ import annotations

import socketserver
from dataclasses import replace
from threading import Thread

import pytest

from gpucourse.local.health import banner
from gpucourse.model.node import Inventory
from gpucourse.workspace import deployments
from tests.learning import Learning, deploy
from tests.unit.ui.examples import deployment


def test_destroy_of_a_lab_that_is_not_deployed_names_those_that_are(learning: Learning) -> None:
    assert "Nothing is deployed from this workspace" in learning.types("destroy", "1").out
    deployments.save(learning.open_context().paths, deployment())
    assert "Module 1 is not deployed; deployed: 3 (local)." in learning.types("destroy", "1").out
    assert "Module 1 is not deployed on hosts; deployed: 3 (local)." in learning.types("destroy", "1", "--target", "hosts").out
    assert "No such lab is deployed with l4; deployed: 3 (local)." in learning.types("destroy", "--all", "--gpu", "l4").out
    assert [lab.stack for lab in deployments.every(learning.open_context().paths)] == ["m3-local"]


def test_destroy_that_is_interrupted_says_what_to_type(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    deployments.save(learning.open_context().paths, deployment())
    monkeypatch.setattr("gpucourse.labs.destroy.destroy", interrupt)
    message = learning.types("destroy", "--all", code=130).err
    assert "interrupted while labs were being taken down; some may still be there" in message
    assert "gpucourse destroy --all" in message


def test_destroy_with_something_left_on_simulated_nodes_names_it_and_the_command(learning: Learning) -> None:
    lab = deploy(learning)
    assert lab.inventory is not None

    class Node(socketserver.BaseRequestHandler):
        """Answer as a node of this lab, from a process that is not marked as a part of the lab."""

        def handle(self) -> None:
            self.request.sendall(f"SSH-2.0-{banner(lab.uid, 'node0')}\r\n".encode())

    with socketserver.TCPServer(("127.0.0.1", 0), Node) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        port = server.server_address[1]
        lab.inventory = Inventory(stack=lab.stack, nodes=(replace(lab.inventory.nodes[0], port=port),))
        deployments.save(learning.context.paths, lab)
        result = learning.types("destroy", "1", code=8)
        server.shutdown()
    assert f"still there after destroying 01-local: port 127.0.0.1:{port}" in result.err
    assert "type it again: gpucourse destroy 1" in result.err
    assert f"end the process that listens: lsof -i tcp:{port}" in result.out
    assert "nothing is left" in learning.types("destroy", "1").out
