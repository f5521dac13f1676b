"""The accelerate launcher: `accelerate launch` of Hugging Face on each node. It starts the ranks there with torchrun's code."""

from __future__ import annotations

from gpucourse.launch.launcher import LaunchRequest
from gpucourse.launch.planning import RANK, RankLauncher, Rendezvous
from gpucourse.model.node import Node


class Accelerate(RankLauncher):
    """The launcher that starts `accelerate launch` on each node."""

    name = "accelerate"
    title = "accelerate launch on every node"
    starts_ranks = True
    packages = ("torch", "accelerate")

    def start(
        self, request: LaunchRequest, node: Node, processes: int, rendezvous: Rendezvous
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the argument list of the command that one node starts. Every option is set, so that a configuration file of
        accelerate on the node has no effect."""
        world = processes * rendezvous.nodes
        rank_variables = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
        meeting = {"MASTER_ADDR": rendezvous.address, "MASTER_PORT": str(rendezvous.port)}
        argv = (
            node.python,
            "-m",
            "accelerate.commands.launch",
            f"--num_machines={rendezvous.nodes}",
            f"--machine_rank={rendezvous.node_rank}",
            f"--num_processes={world}",
            f"--main_process_ip={rendezvous.address}",
            f"--main_process_port={rendezvous.port}",
            "--mixed_precision=no",
            "--dynamo_backend=no",
            "--same_network",
            *(("--multi_gpu", "--rdzv_backend=static") if world > 1 else ()),
            "--no_python",
            RANK,
            node.python,
            "-u",
            request.script,
            *request.arguments,
        )
        return argv, {**rank_variables, **meeting} if world == 1 else {}
