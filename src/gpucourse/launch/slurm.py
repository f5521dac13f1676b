"""The Slurm launcher: make files for sbatch from a request. Nothing is changed, so `--dry-run` can print the files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpucourse.errors import UsageError
from gpucourse.launch import environment, sbatch
from gpucourse.launch.launcher import ClusterFacts, Launcher, LaunchRequest, find_launcher
from gpucourse.launch.planning import RankLauncher, Rendezvous, check_count, count_processes, make_plan, max_restarts_of
from gpucourse.model.node import Mode, Node, is_simulated
from gpucourse.model.plan import Batch, BatchFile, LaunchPlan, NodeCommand
from gpucourse.outside.slurm_options import read_sbatch_options

if TYPE_CHECKING:  # it imports pydantic, which `run --help` does not need
    from gpucourse.model.launching import SlurmLaunch

PARTITION = "gpu"
MAX_TASKS = 64
SUBMIT = ("sbatch", "--parsable")


class Slurm(Launcher[ClusterFacts]):
    """The launcher of batch jobs. It makes files for sbatch, which are submitted on the node that accepts jobs."""

    name = "slurm"
    title = "a batch job"
    by_slurm = True
    takes_batch_files = True

    def object_to(self, *, torchrun: str, handed_on: Sequence[str], profile: bool) -> UsageError | None:
        """Return the error if Slurm cannot do what was typed, or None if it can. Jobs have no profiler."""
        if profile:
            return UsageError("--profile is for python and torchrun, not for slurm", hint="gpucourse run 3.2 --profile")
        return super().object_to(torchrun=torchrun, handed_on=handed_on, profile=profile)

    def plan(self, request: LaunchRequest, nodes: Sequence[Node], facts: ClusterFacts) -> LaunchPlan:
        """Return the launch plan: one command on the node that accepts jobs, and the files that it passes to sbatch.

        The request may name another launcher. Inside the job, its command then starts the ranks.
        """
        slurm, head = request.exercise.launch.slurm_request, nodes[0]
        tasks = 1 if slurm.array or slurm.jobs else tasks_of(request, facts.gpus)
        files, setup = _files(request, slurm, head, tasks, facts)
        batch = Batch(
            partition=facts.partition,
            nodes=facts.nodes,
            tasks=tasks,
            gpus=facts.gpus,
            files=files,
            show_queue=slurm.show_queue and files[0].rows > 1,
            cancel_last=slurm.cancel_last and files[0].copies > 1,
            module=facts.module,
            setup=setup,
            python=write_python(head, facts) if setup else "",
            absent_partition=facts.site.absent_partition,
            cpu_partition=next((flag[12:] for flag in facts.site.cpu_flags if flag.startswith("--partition=")), ""),
            by_launcher=_choose_starter(request) is not None,
            max_restarts=max_restarts_of(request),
        )
        ranks = facts.nodes * tasks if batch.spread else sum(file.rows for file in files)
        argv = (*SUBMIT, *files[0].flags, f"{files[0].name}.sbatch", *files[0].arguments)
        command = NodeCommand(node=head, argv=argv, env={}, ranks=tuple(range(ranks)))
        return make_plan(request, [command], batch=batch, max_restarts=batch.max_restarts)


def partition_of(request: LaunchRequest, login: str = "") -> str:
    """Return the partition that a job goes to, or an empty string if none was named.

    The first of these decides: the learner's --set, the login's setting for Slurm's commands (`login`), the learner's batch
    file, the manifest.
    """
    name = request.exercise.launch.slurm_request.partition
    value = str(request.parameters.get(name, "")) if name else ""
    if name in request.typed:
        return value
    if login or request.written_batch is None:
        return login or value
    return read_sbatch_options(request.written_batch.text).values.get("partition", "")


def nodes_of(request: LaunchRequest, requested: int | None) -> int:
    """Return how many nodes each job needs. Raises UsageError with the command that gives a valid number."""
    count = requested if requested is not None else request.exercise.launch.nodes
    check_count(request.exercise, count)
    return count


def tasks_of(request: LaunchRequest, gpus: int) -> int:
    """Return how many processes start on each node. An exercise with one process per node keeps that number, as with its own
    launcher."""
    launcher = find_launcher(request.launcher)
    one_process = launcher.one_process if not launcher.by_slurm else request.exercise.launch.traits.one_process
    return 1 if one_process else count_processes(request, gpus, local=False)


def _choose_starter(request: LaunchRequest) -> RankLauncher | None:
    """Return the launcher that starts the ranks inside the job: the requested one or, if that is Slurm itself and ranks may be
    restarted, torchrun. Return None if srun starts the ranks."""
    launcher = find_launcher(request.launcher)
    if launcher.by_slurm:
        launcher = find_launcher("torchrun") if max_restarts_of(request) else launcher
    return launcher if isinstance(launcher, RankLauncher) else None


def _start(request: LaunchRequest, launcher: RankLauncher, head: Node, nodes: int, tasks: int) -> sbatch.StartCommand:
    """Return the command of a launcher with the placeholders of a batch file."""
    rendezvous = Rendezvous(nodes=nodes, node_rank=sbatch.NODE_RANK, address=sbatch.ADDRESS, port=sbatch.PORT)
    argv, variables = launcher.start(request, replace(head, python=sbatch.PYTHON), tasks, rendezvous)
    return sbatch.StartCommand(
        name=argv[0] if launcher.starts_once else launcher.name, argv=argv, variables=variables, once=launcher.starts_once
    )


def _python(head: Node, facts: ClusterFacts) -> str:
    """Return the command that starts Python in a job, as shell text."""
    return facts.site.python or shlex.quote(facts.python or head.python)


def write_python(head: Node, facts: ClusterFacts) -> str:
    """Return the command of `bin/python`, for files and terminals of the learner."""
    return sbatch.enter(facts.site) + _python(head, facts)


def _files(
    request: LaunchRequest, slurm: SlurmLaunch, head: Node, tasks: int, place: ClusterFacts
) -> tuple[tuple[BatchFile, ...], str]:
    """Return the files in the order of their submission, and the text of setup.sh if the first file is the learner's."""
    exercise = request.exercise
    count = _values(request, slurm.array) if slurm.array and slurm.array in request.parameters else 0
    copies = request.parameters.get(slurm.jobs, 1) if slurm.jobs else 1
    task = None if count else request.array_task
    starter = _choose_starter(request)
    first = sbatch.SbatchJob(
        title=f"{exercise.id} {exercise.title}",
        name=exercise.id,
        partition=place.partition,
        nodes=place.nodes,
        tasks=tasks,
        gpus=place.gpus,
        array=_range(request, slurm, count) if count else "" if task is None else str(task),
        time_s=request.timeout_s,
        environment=make_environment(request, head.mode, place.gpus, tasks),
        handed_on=request.handed_on,
        threads=place.threads,
        command=(sbatch.PYTHON, "-u", request.script, *request.arguments),
        python=_python(head, place),
        start=_start(request, starter, head, place.nodes, tasks) if starter else None,
        site=place.site,
        removes_temporary=not is_simulated(head.mode),
    )
    flags = (*place.site.flags, *_type_beside(request, slurm, first))
    text = sbatch.render(first)
    files = [
        BatchFile(name="array" if count else "job", text=text, copies=_read_whole_number(copies), tasks=count, flags=flags)
    ]
    if task is not None:
        files[0] = replace(files[0], tasks=1, numbers=(task,))
    setup = ""
    if request.written_batch is not None:
        setup = sbatch.render_setup(first)
        files[0] = replace(
            files[0],
            name=request.written_batch.name,
            text=request.written_batch.text,
            tasks=request.written_batch.tasks,
            arguments=request.arguments,
        )
    if slurm.gather and request.script == exercise.script:
        gather = replace(
            first,
            title=f"{first.title}: the results of all tasks",
            name=f"{exercise.id}-gather",
            nodes=1,
            tasks=1,
            gpus=0,
            array="",
            environment=make_environment(request, head.mode, 0),
            start=None,
            command=(sbatch.PYTHON, "-u", slurm.gather, *request.arguments),
            site=replace(place.site, flags=place.site.cpu_flags, cores=0),
        )
        text = sbatch.render(gather)
        files.append(BatchFile(name="gather", text=text, after=files[0].name, flags=place.site.cpu_flags))
    return tuple(files), setup


def _type_beside(request: LaunchRequest, slurm: SlurmLaunch, job: sbatch.SbatchJob) -> tuple[str, ...]:
    """Return the options that the learner typed for this run. They follow `sbatch` on its command line, so they override the
    file and the login's settings.
    """
    values = {"timeout": f"--time={sbatch.time_limit(job.time_s)}", slurm.partition: f"--partition={job.partition}"}
    if request.written_batch is not None:
        values |= {
            "nodes": f"--nodes={job.nodes}",
            request.exercise.launch.count_parameter: f"--ntasks-per-node={job.tasks}",
            slurm.at_once: f"--array={_range(request, slurm, request.written_batch.tasks)}"
            if request.written_batch.tasks
            else "",
        }
    return tuple(flag for name, flag in values.items() if name in request.typed and flag)


def make_environment(request: LaunchRequest, mode: Mode, gpus: int, tasks: int = 1) -> dict[str, str]:
    """Return the environment of a process.

    NCCL needs a GPU for each process of a machine. If the learner sets more processes than there are GPUs, all of them compute
    on CPUs with gloo. If there are more processes for another reason, the script reports the mistake.
    """
    shared = request.exercise.launch.count_parameter is not None and tasks > gpus
    kind = "nccl" if gpus and not is_simulated(mode) and not shared else "gloo"
    common = environment.make_script_variables(
        mode=mode, backend=kind, collective_timeout_s=request.exercise.launch.collective_timeout
    )
    sockets = request.nccl if kind == "nccl" else {}
    variables = {**common, **sockets, **request.environment}
    return {name: value for name, value in variables.items() if name not in request.handed_on}


def _values(request: LaunchRequest, parameter: str) -> int:
    """Return how many values, separated by commas, a parameter has. Raises UsageError if there are too many or one is empty."""
    text = str(request.parameters.get(parameter, ""))
    values = [value.strip() for value in text.split(",")]
    if "" in values or not 1 <= len(values) <= MAX_TASKS:
        raise UsageError(
            f"--set {parameter}={text}: not 1 to {MAX_TASKS} values separated by commas",
            hint=f"gpucourse run {request.exercise.id} --set {parameter}=16,32,64,128",
        )
    return len(values)


def _range(request: LaunchRequest, slurm: SlurmLaunch, count: int) -> str:
    at_once = _read_whole_number(request.parameters.get(slurm.at_once, 0)) if slurm.at_once else 0
    return f"0-{count - 1}{f'%{at_once}' if 0 < at_once < count else ''}"


def _read_whole_number(value: object) -> int:
    return value if isinstance(value, int) else 1
