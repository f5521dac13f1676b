"""The plan of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpucourse.errors import UsageError
from gpucourse.launch import environment, python, torchrun
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Inventory, Mode, Node, is_simulated
from gpucourse.model.plan import LaunchPlan, NodeCommand, Upload


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """The facts that were looked up on a node before planning: processor cores, and the interface that leads to the other
    nodes."""

    cores: int
    interface: str


@dataclass(frozen=True, kw_only=True)
class WrittenBatch:
    """A batch file that the learner wrote as a part of an exercise: `name` is the file's name without its ending; `tasks` are
    those of its array, 0 if it is none."""

    name: str
    text: str
    tasks: int = 0


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """The learner's request, resolved: typed parameters and the script's arguments in order. `typed` are the names that were
    typed, of parameters and of the options nodes and timeout. `written` is submitted in place of the course's own file.
    `environment` overrules what would be set otherwise; the variables `handed_on` get their values when the run starts."""

    exercise: Exercise
    launcher: str
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    script: str
    parameters: dict[str, object]
    arguments: tuple[str, ...]
    uploads: tuple[Upload, ...]
    timeout_s: float
    environment: dict[str, str] = field(default_factory=dict)
    handed_on: tuple[str, ...] = ()
    torchrun_options: torchrun.OwnOptions = field(default_factory=torchrun.OwnOptions)
    nccl: dict[str, str] = field(default_factory=dict)
    processes: int | None = None
    typed: frozenset[str] = frozenset()
    written: WrittenBatch | None = None


def check_count(exercise: Exercise, nodes: int) -> None:
    """Check that an exercise runs on that many nodes. Raises UsageError, with the nearest number that works."""
    low, high = exercise.launch.min_nodes, exercise.launch.max_nodes
    if not low <= nodes <= high:
        span = f"{f'{low} to' if low != high else 'exactly'} {high} node{'' if high == 1 else 's'}"
        raise UsageError(
            f"{exercise.id} runs on {span}, not on {nodes}",
            hint=f"gpucourse run {exercise.id} --nodes {max(low, min(high, nodes))}",
        )


def choose_nodes(exercise: Exercise, inventory: Inventory, wanted: int | None, module: str) -> tuple[Node, ...]:
    """Return the nodes that take part, head first. Raises UsageError with the command that fixes it."""
    launch, deployed = exercise.launch, len(inventory.nodes)
    count = wanted if wanted is not None else min(launch.nodes, deployed)
    check_count(exercise, count)
    if count > deployed:
        raise UsageError(
            f"{count} nodes were asked for, {deployed} {'is' if deployed == 1 else 'are'} deployed",
            hint=f"gpucourse deploy {module} --nodes {count}",
        )
    head = inventory.head
    return (head, *(node for node in inventory.nodes if node.name != head.name))[:count]


def plan(
    request: LaunchRequest, nodes: tuple[Node, ...], facts: Mapping[str, NodeFacts], *, run_id: str, port: int
) -> LaunchPlan:
    """Return the launch plan: one command for each node, with every address, interface, timeout and thread count set
    explicitly."""
    exercise = request.exercise
    mode: Mode = nodes[0].mode
    per_node = [_processes(request, node) for node in nodes]
    world = sum(per_node)
    commands, first = [], 0
    for index, (node, processes) in enumerate(zip(nodes, per_node, strict=True)):
        ranks = tuple(range(first, first + processes))
        first += processes
        rendezvous = torchrun.Rendezvous(nodes=len(nodes), node_rank=index, address=nodes[0].private_address, port=port)
        env = {
            **environment.make_script_variables(
                mode=mode, backend=environment.choose_backend(nodes), collective_timeout_s=exercise.launch.collective_timeout
            ),
            **environment.make_network_variables(facts[node.name].interface, gpus=node.gpus, nccl=request.nccl),
            **environment.make_thread_variables(facts[node.name].cores, sharing=world if is_simulated(mode) else processes),
            **request.environment,
        }
        if request.launcher == "torchrun":
            argv = torchrun.command(
                node.python,
                rendezvous,
                processes,
                request.script,
                request.arguments,
                max_restarts=max_restarts_of(request),
                options=request.torchrun_options.words,
            )
        else:
            argv = python.command(node.python, request.script, request.arguments)
            env |= python.ranks(index, len(nodes), rendezvous)
        commands.append(NodeCommand(node=node, argv=argv, env=env, ranks=ranks))
    return LaunchPlan(
        run_id=run_id,
        exercise=exercise.id,
        launcher=request.launcher,
        mode=mode,
        script=request.script,
        parameters=request.parameters,
        commands=tuple(commands),
        uploads=request.uploads,
        master_address=nodes[0].private_address,
        master_port=port,
        timeout_s=request.timeout_s,
        collective_timeout_s=exercise.launch.collective_timeout,
        outputs=exercise.outputs,
        max_output_bytes=exercise.max_output,
        max_restarts=max_restarts_of(request) if request.launcher == "torchrun" else 0,
        handed_on=request.handed_on,
    )


def max_restarts_of(request: LaunchRequest) -> int:
    """Return how often torchrun may restart all ranks. For a script of the learner it is the number that was typed, or 0."""
    if request.torchrun_options.max_restarts is not None:
        return request.torchrun_options.max_restarts
    wanted: object = request.exercise.launch.restarts
    if name := request.exercise.launch.restart_parameter:
        wanted = request.parameters.get(name, 0)
    return wanted if isinstance(wanted, int) else 0


def _processes(request: LaunchRequest, node: Node) -> int:
    if request.launcher == "python":
        return 1
    if request.processes is not None:
        return request.processes
    value: object = request.exercise.launch.procs_per_node
    if name := request.exercise.launch.count_parameter:
        parameter = request.exercise.parameter(name)
        default = parameter.default_for(local=node.is_simulated) if parameter else 1
        value = request.parameters.get(name, default)  # a script of the learner has only what was typed
    return value if isinstance(value, int) else max(1, node.gpus)
