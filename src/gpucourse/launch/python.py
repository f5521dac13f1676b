"""The python launcher: one process for each node, with the rank variables that torchrun would set."""

from __future__ import annotations

from gpucourse.launch.launcher import LaunchRequest
from gpucourse.launch.planning import RANK, RankLauncher, Rendezvous
from gpucourse.model.node import Node


class Python(RankLauncher):
    """The launcher that starts Python on each node."""

    name = "python"
    title = "one process on each node"
    one_process = True

    def start(
        self, request: LaunchRequest, node: Node, processes: int, rendezvous: Rendezvous
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the argument list of the command that one node starts, and the rank variables of its process."""
        variables = {
            "RANK": str(rendezvous.node_rank),
            "LOCAL_RANK": "0",
            "WORLD_SIZE": str(rendezvous.nodes),
            "LOCAL_WORLD_SIZE": str(processes),
            "MASTER_ADDR": rendezvous.address,
            "MASTER_PORT": str(rendezvous.port),
        }
        return (RANK, node.python, "-u", request.script, *request.arguments), variables
