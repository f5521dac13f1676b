"""The mpi launcher: mpirun on the first node, which starts the ranks of all nodes.

On your own machines, mpirun reaches the other nodes by ssh. In a Slurm job, it uses the job's nodes.
"""

from __future__ import annotations

from gpucourse.launch.launcher import LaunchRequest
from gpucourse.launch.planning import RANK, RankLauncher, Rendezvous
from gpucourse.model.node import Node


class Mpi(RankLauncher):
    """The launcher that starts mpirun on the first node."""

    name = "mpi"
    title = "mpirun on the first node"
    starts_ranks = True
    starts_once = True
    packages = ("mpi4py",)

    def start(
        self, request: LaunchRequest, node: Node, processes: int, rendezvous: Rendezvous
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the argument list of mpirun, without variables: MPI numbers the ranks.

        Each rank has its own log only in a Slurm job: on your own machines, the other nodes lack the wrapper that writes it.
        """
        listing = ",".join(f"{host}:{processes}" for host in rendezvous.hosts)
        places = ("--host", listing) if listing else ()
        wrapper = () if listing else (RANK,)
        count = str(processes * rendezvous.nodes)
        return ("mpirun", "-np", count, *places, *wrapper, node.python, "-u", request.script, *request.arguments), {}
