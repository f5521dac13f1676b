"""Links over another link: in a shared folder, and kept for the next user."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.remote.exchange import EndedEarly
from gpucourse.remote.jobs import command
from gpucourse.remote.links import KeptTransport, SharedTransport
from tests.unit.remote.agent_link import AgentNodes, make_nodes
from tests.unit.remote.answering import AnsweringNodes

NODE = make_nodes(1)[0]


def test_shared_link_starts_in_the_folder_of_the_user(tmp_path: Path) -> None:
    shared = tmp_path / "all of us"
    shared.mkdir()
    link = SharedTransport(AgentNodes(tmp_path), str(shared)).connect(NODE)
    own = shared / f"gpucourse-{pwd.getpwuid(os.getuid()).pw_name}"
    assert link.run('pwd; echo "$HOME"').stdout.decode().splitlines() == [str(own), str(own)]
    assert own.stat().st_mode & 0o777 == 0o700
    with link.stream("pwd") as pieces:
        assert b"".join(pieces).decode() == f"{own}\n"
    (tmp_path / "file").touch()
    assert SharedTransport(AgentNodes(tmp_path), str(tmp_path / "file")).connect(NODE).run("pwd").code == 73


def test_kept_transport_shares_a_link_until_its_end() -> None:
    nodes = AnsweringNodes(node0={})
    kept = KeptTransport(lambda: nodes)
    first, second = kept.connect(NODE), kept.connect(NODE)
    first.close()
    assert (first.alive, second.alive) == (False, True)
    second.close()
    assert kept.connect(NODE).alive, "it stays open for the next user"
    assert len(nodes.links) == 1
    kept.close()
    assert not nodes.links[0].alive


@pytest.mark.parametrize(
    ("error", "links"), [(UnreachableError("cut", hint=""), 2), (EndedEarly("node0", 1, b"the command failed"), 1)]
)
def test_kept_transport_replaces_a_link_that_failed(error: UnreachableError, links: int) -> None:
    nodes = AnsweringNodes(node0={"state": error})
    kept = KeptTransport(lambda: nodes)
    first, second = kept.connect(NODE), kept.connect(NODE)
    with pytest.raises(UnreachableError):
        first.run(command(NODE, "state"))
    first.close()
    kept.connect(NODE).close()
    assert len(nodes.links) == links
    assert nodes.links[0].alive, "it has another user"
    second.close()
    assert nodes.links[0].alive == (links == 1)
