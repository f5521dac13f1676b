"""Links that are begun before they are requested, and the probe that follows."""

from __future__ import annotations

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.remote.early import EarlyTransport, ProbeRequest
from tests.unit.remote.agent_link import make_nodes
from tests.unit.remote.answering import PROBE, AnsweringNodes

NODE = make_nodes(1)[0]
REQUEST = ProbeRequest(modules=("torch",))


def test_connect_returns_the_early_link_once() -> None:
    nodes = AnsweringNodes(node0={})
    early = EarlyTransport(nodes, [NODE])
    assert early.connect(NODE) is nodes.links[0]
    assert early.connect(NODE) is nodes.links[1]
    early.close()
    assert nodes.links[0].alive, "its user closes it"


def test_connect_raises_a_recent_error_and_tries_again_after_an_old_one() -> None:
    nodes = AnsweringNodes(node0=UnreachableError("down", hint=""))
    recent, old = EarlyTransport(nodes, [NODE]), EarlyTransport(nodes, [NODE], fresh_s=0.0)
    for early in (recent, old):
        with pytest.raises(UnreachableError, match="down"):
            early.connect(NODE)
    nodes.answers["node0"] = {}
    assert EarlyTransport(nodes, []).connect(NODE).alive, "a node that was not begun early"


def test_close_drops_a_link_that_nobody_requested() -> None:
    nodes = AnsweringNodes(node0={"probe": PROBE})
    early = EarlyTransport(nodes, [NODE], modules=["torch"])
    assert early.find(NODE, REQUEST) is not None
    early.close()
    assert not nodes.links[0].alive


def test_find_returns_a_fresh_answer_to_the_same_request_once() -> None:
    nodes = AnsweringNodes(node0={"probe": PROBE})
    early = EarlyTransport(nodes, [NODE], modules=["torch"])
    assert early.find(NODE, ProbeRequest()) is None, "another request"
    found = early.find(NODE, REQUEST)
    assert found is not None
    assert (found.missing, found.free_ports) == (("torch",), (29501,))
    assert early.find(NODE, REQUEST) is None
    assert EarlyTransport(nodes, [NODE], modules=["torch"], fresh_s=0.0).find(NODE, REQUEST) is None, "it is old"
