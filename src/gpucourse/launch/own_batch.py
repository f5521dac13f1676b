"""Submit a learner's batch file. sbatch receives the file unchanged; the command only adds the options that are needed to
follow it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from shlex import quote

from gpucourse.errors import UsageError
from gpucourse.launch import sbatch, slurm
from gpucourse.launch.launcher import LaunchRequest
from gpucourse.launch.planning import make_plan
from gpucourse.model.node import Node
from gpucourse.model.plan import Batch, BatchFile, LaunchPlan, NodeCommand
from gpucourse.outside import slurm_options
from gpucourse.outside.files import read_ends, read_named
from gpucourse.outside.names import OutsideError
from gpucourse.outside.slurm_options import OptionRefused, SlurmOptions

SUFFIXES = (".sbatch", ".slurm")
SHELL_SUFFIXES = (".sh", ".bash")
CUDA_SUFFIX = ".cu"
MAX_TASKS = 10_000
"""The maximum number of tasks of an array that can be followed. Slurm itself accepts 1,001 unless MaxArraySize is set
higher."""

MAX_BYTES = 4 << 20
"""The largest batch file. sbatch itself accepts no larger one (max_script_size)."""

_PARTS = re.compile(r"(?:het|pack)job\b")
_READ_BYTES = 1 << 16  # the beginning of a file for sbatch is shorter
_PYTHON = re.compile(r"#!\s*\S*?(?:/env\s+(?:-\S+\s+)*)?(?:\S*/)?python[\d.]*\s*$")


@dataclass(frozen=True, kw_only=True)
class OwnBatch:
    """A batch file and the requests in its #SBATCH lines.

    `tasks`: the number of each task of an array; empty without an array.
    `at_once`: how many of them may run at a time, or 0 if there is no limit.
    """

    text: str
    options: SlurmOptions
    tasks: tuple[int, ...] = ()
    at_once: int = 0

    def read_option(self, name: str) -> str:
        """Return the value of an option in the file, or an empty string if the file does not have the option."""
        return self.options.values.get(name, "")


@dataclass(frozen=True)
class ScriptKind:
    """The kind of a script, by its beginning and its name.

    `is_python`: Python starts it. Its first line names Python, or the line names no program and the script's name ends in .py.
    `is_cuda`: its name ends in .cu. Python starts it as well, with a script of the course.
    `is_batch`: it begins with #! and has lines with #SBATCH, or its name ends in .sbatch or .slurm.
    `is_shell`: it is for a shell, and contains no lines for sbatch.
    """

    is_python: bool
    is_batch: bool
    is_shell: bool
    is_cuda: bool = False


def read_kind(script: Path) -> ScriptKind:
    """Return the kind of a script. A script that cannot be read is judged by its name."""
    text = _read_beginning(script)
    first = text.partition("\n")[0].rstrip("\r")
    names_program = first.startswith("#!")
    if script.suffix == CUDA_SUFFIX:
        return ScriptKind(is_python=True, is_batch=False, is_shell=False, is_cuda=True)
    is_python = bool(_PYTHON.match(first)) if names_program else script.suffix == ".py"
    is_batch = script.suffix in SUFFIXES or (names_program and bool(slurm_options.find_lines(text)))
    is_shell = not is_batch and not is_python and (names_program or script.suffix in SHELL_SUFFIXES)
    return ScriptKind(is_python, is_batch, is_shell)


def check_script(script: Path) -> None:
    """Check that a script is a file, and not a notebook. Raises UsageError."""
    if not script.is_file():
        problem = "it is not a plain file" if script.exists() else "there is no such file"
        raise UsageError(f"--script {script}: {problem}", hint="name a Python file on this computer")
    if script.suffix == ".ipynb":
        raise UsageError(
            f"--script {script}: a notebook is not a Python script",
            hint=f"jupyter nbconvert --to script {quote(str(script))}, then gpucourse run --script "
            f"{quote(str(script.with_suffix('.py')))}",
        )


def make_shell_script_error(script: Path) -> UsageError:
    """Return the error for a shell script, which neither Python nor torchrun can start."""
    return UsageError(
        f"{script} is a shell script without lines for sbatch (#SBATCH, above the first command): --script starts Python, "
        "or hands a batch file to sbatch",
        hint=f"gpucourse run --script {script} --launcher slurm makes it a job. Or name the Python script that it starts",
    )


def read(script: Path) -> OwnBatch:
    """Return the file with its requests.

    Raises UsageError for a heterogeneous job, for an array with more than MAX_TASKS tasks, and for a file that cannot be read.
    """
    try:
        content = read_named(script, MAX_BYTES)
        text = content.decode()
    except UnicodeDecodeError as error:
        place = content[: error.start].count(b"\n") + 1
        hint = "save it as UTF-8: iconv -f latin1 -t utf-8 FILE"
        raise UsageError(f"--script {script}: line {place} is not text in UTF-8", hint=hint) from error
    except (OSError, OutsideError) as error:
        raise UsageError(f"--script {script}: {error}", hint="name a batch file on this computer") from error
    for number, line in slurm_options.find_lines(text):
        if _PARTS.match(line.removeprefix("#SBATCH").strip()):
            raise UsageError(
                f"{script.name} is a heterogeneous job (line {number}: {line.strip()}): Slurm makes several jobs of it, which "
                "cannot be followed as one",
                hint="submit it by hand: gpucourse ssh 2, then sbatch there; or write one batch file for each part",
            )
    options = slurm_options.read_sbatch_options(text)
    try:
        tasks, at_once = options.array
    except OptionRefused:  # sbatch will refuse it
        tasks, at_once = (), 0
    if len(tasks) > MAX_TASKS:
        raise UsageError(
            f"{script.name} is an array of {len(tasks):,} tasks, but at most {MAX_TASKS:,} can be followed",
            hint="use a smaller --array; or submit it by hand: gpucourse ssh 2, then sbatch there",
        )
    return OwnBatch(text=text, options=options, tasks=tasks, at_once=at_once)


def plan(
    request: LaunchRequest,
    head: Node,
    batch_file: OwnBatch,
    *,
    nodes: int | None,
    partition: str,
    default: str,
    time_s: float | None,
    module: str,
    login: str = "",
    site_flags: tuple[str, ...] = (),
) -> LaunchPlan:
    """Return the launch plan for a batch file.

    `nodes`, `partition`, `time_s`: the values that the learner typed, if any. They override the file.
    `login`: the partition that the environment of the learner's login shell sets. It also overrides the file.
    `default`: the partition of jobs that name no partition.
    `site_flags`: the options from the learner's settings for the cluster.
    """
    options = (
        f"--nodes={nodes}" if nodes else "",
        f"--partition={partition}" if partition else "",
        f"--time={sbatch.time_limit(time_s)}" if time_s else "",
    )
    error, log_options = _follow_output(batch_file)
    export = _export_also(batch_file, (*request.environment, *request.handed_on))
    flags = (*site_flags, *filter(None, options), *export, *log_options)
    file = BatchFile(
        name="job",
        text=batch_file.text,
        numbers=batch_file.tasks,
        flags=flags,
        arguments=request.arguments,
        error=error,
        script=request.script,
    )
    target = partition or login or batch_file.read_option("partition") or default
    node_count = nodes or batch_file.options.nodes
    batch = Batch(
        partition=target,
        nodes=node_count,
        tasks=-(-batch_file.options.tasks // node_count),
        gpus=batch_file.options.gpus,
        files=(file,),
        module=module,
        max_s=time_s or _read_seconds(batch_file),
        own=True,
        asks=_describe(batch_file, node_count, target),
    )
    argv = (*slurm.SUBMIT, *flags, file.file_name, *request.arguments)
    selection = {"SBATCH_PARTITION": partition} if partition else {}  # also for jobs that the job itself submits
    env = {**selection, **request.environment}
    command = NodeCommand(node=head, argv=argv, env=env, ranks=tuple(range(file.rows)))
    return make_plan(request, [command], batch=batch)


def _export_also(batch: OwnBatch, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the option that passes these variables to a job, if the job's file lists the variables to export.

    By default, sbatch exports all variables, so no option is needed.
    """
    words = batch.read_option("export").split(",")
    if words == [""] or not names or "ALL" in words:
        return ()
    exported = [word for word in words if word not in {"NONE", "NIL"}]
    return (f"--export={','.join([*exported, *names])}",)


def _read_seconds(batch: OwnBatch) -> float | None:
    try:
        return batch.options.seconds
    except OptionRefused:  # sbatch will refuse it
        return None


def _describe(batch: OwnBatch, nodes: int, partition: str) -> str:
    """Return a clause that says what the file requests, such as `2 nodes of the partition gpu, 4 processes in all`."""
    task_count = len(batch.tasks)
    at_once = f" ({batch.at_once:,} at a time)" if batch.at_once else ""
    parts = [
        f"an array of {task_count:,} task{'s' if task_count > 1 else ''}{at_once}, each on" if task_count else "",
        f"{nodes} node{'s' if nodes > 1 else ''}{f' of the partition {partition}' if partition else ''}",
    ]
    text = " ".join(filter(None, parts))
    tasks, gpus = batch.options.tasks, batch.options.gpus
    processes = f", {tasks} process{'es' if tasks > 1 else ''} in all"
    return text + processes + (f", {gpus} GPU{'s' if gpus > 1 else ''} on each node" if gpus else "")


def _follow_output(batch: OwnBatch) -> tuple[str, tuple[str, ...]]:
    """Return the error file to look for when the job has ended, and sbatch's options for following the job's output.

    Errors go to the same file as the output if the batch file says so, or if its error file is outside the run's folder. The
    folder of such a file may not exist, and Slurm would then end the job without a message.
    """
    log = f"../logs/{'%A_%a' if batch.tasks else '%j'}-%N.out"
    output_options = ("--chdir=.", f"--output={log}", "--open-mode=append")  # typed after sbatch, they override the file
    error = batch.read_option("error")
    path = PurePosixPath(error)
    if not error or (error != batch.read_option("output") and not path.is_absolute() and ".." not in path.parts):
        return error, output_options
    return "", (*output_options, f"--error={log}")


def _read_beginning(script: Path) -> str:
    try:
        return read_ends(Path(os.path.realpath(script)), _READ_BYTES, 0)[0].decode("utf-8", "replace")
    except (OSError, OutsideError):  # the code that reads the whole file reports the error
        return ""
