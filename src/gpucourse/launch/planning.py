"""The common part of several launchers' plans: the numbers of nodes and processes, and the command of each node."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpucourse.errors import UsageError
from gpucourse.launch import environment
from gpucourse.launch.launcher import LabFacts, Launcher, LaunchRequest
from gpucourse.model.node import Inventory, Mode, Node, is_simulated
from gpucourse.model.plan import Batch, LaunchPlan, NodeCommand

if TYPE_CHECKING:  # it imports pydantic, which `run --help` does not need
    from gpucourse.model.manifest import Exercise

REHEARSAL = "dry-run"  # the id of a run that is only planned so far
RANK = "{rank}"
"""The placeholder in a command. A node's agent replaces it with the wrapper that writes a separate log for each rank."""


@dataclass(frozen=True, kw_only=True)
class Rendezvous:
    """The meeting point of a run's ranks, seen from one node.

    In a batch file, the rank of the node, the address and the port are placeholders for variables of the job.
    `hosts`: the addresses of all nodes. It is empty in a batch file, because Slurm names the nodes.
    """

    nodes: int
    node_rank: int | str
    address: str
    port: int | str
    hosts: tuple[str, ...] = ()


class RankLauncher(Launcher[LabFacts]):
    """A launcher that starts one command on each node, or one on the first node only (`starts_once`)."""

    @abstractmethod
    def start(
        self, request: LaunchRequest, node: Node, processes: int, rendezvous: Rendezvous
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the argument list of the command that one node starts, and the variables that this launcher sets."""

    def plan(self, request: LaunchRequest, nodes: Sequence[Node], facts: LabFacts) -> LaunchPlan:
        """Return the launch plan, with one command for each node. Every address, interface, timeout and thread count is set
        explicitly."""
        launch = request.exercise.launch
        mode: Mode = nodes[0].mode
        per_node = [1 if self.one_process else count_processes(request, node.gpus, local=node.is_simulated) for node in nodes]
        world = sum(per_node)
        backend = "nccl" if all(node.gpus for node in nodes) else "gloo"
        commands, first = [], 0
        hosts = tuple(node.private_address for node in nodes)
        for index, (node, processes) in enumerate(zip(nodes[:1] if self.starts_once else nodes, per_node, strict=False)):
            ranks = tuple(range(first, world if self.starts_once else first + processes))
            first += processes
            rendezvous = Rendezvous(nodes=len(nodes), node_rank=index, address=hosts[0], port=facts.port, hosts=hosts)
            # The ranks of a machine share its cores: without a limit on threads, they slow each other down by a factor of 7.
            sharing = world if is_simulated(mode) else processes
            argv, variables = self.start(request, node, processes, rendezvous)
            env = {
                **environment.make_script_variables(mode=mode, backend=backend, collective_timeout_s=launch.collective_timeout),
                **environment.make_network_variables(facts.nodes[node.name].interface, gpus=node.gpus, nccl=request.nccl),
                "OMP_NUM_THREADS": str(max(1, facts.nodes[node.name].cores // max(1, sharing))),
                **request.environment,
                **variables,
            }
            commands.append(NodeCommand(node=node, argv=argv, env=env, ranks=ranks))
        restarts = max_restarts_of(request) if self.can_restart else 0
        spread = len(nodes) if self.starts_once else 0
        return make_plan(request, commands, port=facts.port, max_restarts=restarts, spread=spread)


def make_plan(
    request: LaunchRequest,
    commands: Sequence[NodeCommand],
    *,
    port: int = 0,
    batch: Batch | None = None,
    max_restarts: int = 0,
    spread: int = 0,
) -> LaunchPlan:
    """Return the launch plan of these commands.

    `spread`: on how many nodes the ranks are if the only command runs on the first node, otherwise 0.
    `port`: the port of the first node at which the ranks meet, or 0 if they do not meet.
    """
    head = commands[0].node
    return LaunchPlan(
        run_id=REHEARSAL,
        exercise=request.exercise.id,
        launcher=request.launcher,
        mode=head.mode,
        script=request.script,
        parameters=request.parameters,
        commands=tuple(commands),
        uploads=request.uploads,
        master_address=head.private_address if port else "",
        master_port=port,
        timeout_s=request.timeout_s,
        collective_timeout_s=request.exercise.launch.collective_timeout,
        outputs=request.exercise.outputs,
        max_output_bytes=request.exercise.max_output,
        batch=batch,
        max_restarts=max_restarts,
        spread=spread,
        handed_on=request.handed_on,
    )


def check_count(exercise: Exercise, nodes: int, deployed: int | None = None) -> None:
    """Check that an exercise runs on that many nodes. Raises UsageError, which names the nearest valid number of the `deployed`
    nodes."""
    low, high = exercise.launch.min_nodes, exercise.launch.max_nodes
    if not low <= nodes <= high:
        span = f"{f'{low} to' if low != high else 'exactly'} {high} node{'' if high == 1 else 's'}"
        raise UsageError(
            f"{exercise.id} runs on {span}, not on {nodes}",
            hint=f"gpucourse run {exercise.id} --nodes {max(low, min(high, nodes, deployed or high))}",
        )


def choose_nodes(exercise: Exercise, inventory: Inventory, requested: int | None, module: str) -> tuple[Node, ...]:
    """Return the nodes that take part; the first is the head. Raises UsageError with the command that runs on a valid number of
    nodes."""
    launch, deployed = exercise.launch, len(inventory.nodes)
    count = requested if requested is not None else min(launch.nodes, deployed)
    check_count(exercise, count, deployed)
    if count > deployed:
        raise UsageError(
            f"{count} nodes were requested, but only {deployed} {'is' if deployed == 1 else 'are'} deployed",
            hint=f"gpucourse deploy {module} --nodes {count}",
        )
    head = inventory.head
    return (head, *(node for node in inventory.nodes if node.name != head.name))[:count]


def max_restarts_of(request: LaunchRequest) -> int:
    """Return how often torchrun may restart all ranks: the number typed with --torchrun, otherwise the exercise's number,
    otherwise 0."""
    if request.torchrun_options.max_restarts is not None:
        return request.torchrun_options.max_restarts
    restarts: object = request.exercise.launch.restarts
    if name := request.exercise.launch.restart_parameter:
        restarts = request.parameters.get(name, 0)
    return restarts if isinstance(restarts, int) else 0


def count_processes(request: LaunchRequest, gpus: int, *, local: bool) -> int:
    """Return how many processes run on a node: one for each GPU, a fixed number, or the number that the learner set.

    `gpus`: the node's number of GPUs.
    `local`: whether the nodes are simulated.
    """
    if request.processes is not None:
        return request.processes
    value: object = request.exercise.launch.procs_per_node
    if name := request.exercise.launch.count_parameter:
        parameter = request.exercise.parameter(name)
        default = parameter.default_for(local=local) if parameter else 1
        value = request.parameters.get(name, default)  # a script of the learner has only the typed values
    return value if isinstance(value, int) else max(1, gpus)
