"""The launcher of a terminal. srun opens a shell on a node that Slurm allocates, with the command that a person would type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from gpucourse.errors import UsageError
from gpucourse.launch import sbatch
from gpucourse.launch.launcher import ClusterFacts, Launcher, LaunchRequest
from gpucourse.launch.planning import make_plan
from gpucourse.launch.slurm import make_environment, write_python
from gpucourse.model.node import Node
from gpucourse.model.plan import Batch, BatchFile, LaunchPlan, NodeCommand


class SlurmPty(Launcher[ClusterFacts]):
    """The learner's terminal on a node of the cluster."""

    name = "slurm-pty"
    title = "the learner's terminal on a Slurm node"
    by_slurm = True
    is_terminal = True

    def object_to(self, *, torchrun: str, handed_on: Sequence[str], profile: bool) -> UsageError | None:
        """Return the error if this launcher cannot do what was typed, or None if it can.

        A terminal cannot receive the values of `handed_on`, because any user could read them in the process list.
        """
        if handed_on:
            return UsageError(
                f"--env {handed_on[0]}: its value cannot be passed to a terminal, because the process list would show it",
                hint=f"set it in the terminal: read -rs {handed_on[0]}; export {handed_on[0]}",
            )
        return super().object_to(torchrun=torchrun, handed_on=handed_on, profile=profile)

    def plan(self, request: LaunchRequest, nodes: Sequence[Node], facts: ClusterFacts) -> LaunchPlan:
        """Return the plan of a terminal on a node. The job's name and time limit are in the environment, so that the command
        stays short."""
        name, head, site = request.exercise.id, nodes[0], facts.site
        env = {
            "SLURM_JOB_NAME": name,
            "SLURM_TIMELIMIT": str(max(1, math.ceil(request.timeout_s / 60))),
            "PROMPT_DIRTRIM": "1",  # the folder of a run has a long name
            "HISTFILE": "",  # bash then writes no file into the home, and the run's transcript has the commands
            **make_environment(request, head.mode, facts.gpus),
        }
        batch = Batch(
            partition=facts.partition,
            nodes=1,
            tasks=1,
            gpus=facts.gpus,
            files=(BatchFile(name=name, text="", copies=0),),
            session=True,
            module=facts.module,
            setup=sbatch.render_session(site, facts.partition) if site.setup or site.python or site.flags else "",
            python=write_python(head, facts),
        )
        partition = (f"--partition={facts.partition}",) if facts.partition else ()
        gres = (f"--gres=gpu:{facts.gpus}",) if facts.gpus and not site.requests_gpus else ()
        cores = (f"--cpus-per-task={site.cores}",) if site.cores else ()
        shell = ("bash", "--rcfile", "../setup.sh", "-i") if batch.setup else ("bash",)
        argv = ("srun", *partition, *gres, *cores, *site.flags, "--pty", *shell)
        node = replace(head, python=facts.python or head.python)  # in the session, `python` is the Python of the GPU nodes
        command = NodeCommand(node=node, argv=argv, env=env, ranks=(0,))
        return make_plan(request, [command], batch=batch)
