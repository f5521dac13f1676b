"""When Slurm has every node of a lab, and the message about missing nodes. A head answers from a script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.errors import InfrastructureError
from gpucourse.labs.readiness import wait_for_slurm
from gpucourse.model.event import NodeEvent
from gpucourse.model.node import Inventory, Node
from gpucourse.ports import CommandResult
from tests.unit.labs.aws.fakes import ScriptedNodes, context_in, make_completed, node

HEAD, WORKER = node("node0", role="head", gpus=0, address="10.0.0.1"), node("node1", address="10.0.0.2")
LAB = Inventory(stack="02-aws-t4", nodes=(HEAD, WORKER))


class Cluster:
    """A workspace whose lab has a head and one worker. `sinfo`: Slurm's list of nodes. `log`: the end of each daemon's log."""

    def __init__(self, folder: Path) -> None:
        context, self.events = context_in(folder)
        self.context = replace(context, make_transport=lambda _key: ScriptedNodes(self.answer))
        self.sinfo, self.log = "node1|idle|gpu:1|none\n", ""

    def answer(self, node: Node, command: str) -> CommandResult:
        if "sinfo" in command:
            assert node.name == "node0"
            return make_completed(self.sinfo)
        return make_completed(self.log)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


@pytest.mark.parametrize("gres", ["gpu:1", "gpu:t4:1(S:0-1),tmpdisk:100"])
def test_wait_for_slurm_ends_when_every_node_has_its_gpu(cluster: Cluster, gres: str) -> None:
    cluster.sinfo = f"node1|idle|{gres}|none\n"
    wait_for_slurm(cluster.context, LAB, patience_s=0.0)
    assert [event.node for event in cluster.events if isinstance(event, NodeEvent)] == ["node0", "node1"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("node1|idle*|gpu:1|none\n", r"node1: idle\*\n"),
        ("node1|idle|gpu:16|none\n", r"node1: idle, GPUs gpu:16"),
        ("", "node1: unknown"),
        ("node1|idle|gpu:1|none\nnode2|down*|gpu:1|Not responding\n", "node2: removed, but still in Slurm's lists"),
    ],
)
def test_wait_for_slurm_names_a_node_that_is_wrong_with_the_end_of_its_log(cluster: Cluster, line: str, words: str) -> None:
    cluster.sinfo, cluster.log = line, "error: Munge decode failed\n"
    with pytest.raises(InfrastructureError, match=words) as caught:
        wait_for_slurm(cluster.context, LAB, removed_nodes={"node2"}, patience_s=0.0)
    if "node1:" in words:
        end_of_log = ["node1, the end of /var/log/slurm/slurmd.log:", "error: Munge decode failed"]
        assert caught.value.what.splitlines()[1:] == end_of_log


def test_wait_for_slurm_does_not_wait_for_a_drained_node(cluster: Cluster) -> None:
    cluster.sinfo = "node1|drained|gpu:1|gres/gpu count (0 < 1)\n"
    with pytest.raises(InfrastructureError, match=r"after 0 s: node1: drained \(gres/gpu count \(0 < 1\)\)"):
        wait_for_slurm(cluster.context, LAB, patience_s=600.0)
