"""The Slurm parts of the screen: the file and the commands of a plan, the jobs of a run, and the recorded queue."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from gpucourse.model.plan import Batch, BatchFile, LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import JobRow
from gpucourse.outside.files import read_bounded
from gpucourse.outside.names import OutsideError
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Code, Content, Style, number_column, table
from gpucourse.ui.text import clean, format_count
from gpucourse.workspace.paths import RunPaths

if TYPE_CHECKING:
    from gpucourse.model.manifest import Exercise

MAX_NAMED = 6
_MAX_QUEUE_BYTES = 1 << 20
_STYLES: dict[str, Style] = {"COMPLETED": "good", "CANCELLED": "warn", "RUNNING": "accent", "PENDING": "accent"}


def describe_batch(batch: Batch) -> str:
    """Return in words what each job requests."""
    if batch.asks:
        return batch.asks
    gpus = f", {format_count(batch.gpus, 'GPU')} each" if batch.gpus else ""
    partition = f" of the partition {batch.partition}" if batch.partition else ""
    return f"{format_count(batch.nodes, 'node')}{partition}, {format_count(batch.tasks, 'process', 'processes')} each{gpus}"


def plan(plan: LaunchPlan) -> list[Block]:
    """Return the commands that a person would type on the node that accepts jobs, and the batch files that these commands
    submit."""
    batch = plan.batch
    if batch is None:
        return []
    head = plan.commands[0].node
    if batch.session:
        command_line = shlex.join(plan.commands[0].argv)
        return [
            Code(
                command_line,
                title=f"in your own terminal, on {head.name} ({head.login})",
                are_commands=True,
            )
        ]
    command = plan.commands[0]
    assignments = [f"{name}={shlex.quote(value)}" for name, value in command.env.items()]
    variables = " ".join([*assignments, *(f'{name}="${name}"' for name in plan.handed_on)])
    lines = [f"{variables} {line}".lstrip() for file in batch.files for line in _commands(file)]
    blocks: list[Block] = [Code("\n".join(lines), title=f"{head.name} ({head.login})", are_commands=True)]
    return [*blocks, *(Code(file.text.rstrip("\n"), title=file.file_name) for file in batch.files)]


def summary(record: RunRecord) -> str:
    """Return how many jobs a run has, and where they were submitted."""
    if record.slurm is None:
        return ""
    jobs = len(record.slurm.jobs)
    count_text = f"{jobs} jobs, each" if jobs > 1 else "1 job"
    nodes = format_count(record.slurm.nodes, "node")
    return f"{count_text} on {nodes}, by {record.launcher} in the partition {record.slurm.partition}"


def describe_later(record: RunRecord) -> str:
    """Return the jobs that were submitted by this run's jobs and are still running, or an empty string if there are none."""
    later_jobs = record.slurm.later if record.slurm else []
    if not later_jobs:
        return ""
    names = [f"{job.job} {job.name}".strip() for job in later_jobs[:MAX_NAMED]]
    remainder = f" and {len(later_jobs) - MAX_NAMED} more" if len(later_jobs) > MAX_NAMED else ""
    return f"{format_count(len(later_jobs), 'job')} still running, submitted by this run: {', '.join(names)}{remainder}"


def jobs(record: RunRecord, exercise: Exercise | None, *, are_measured: bool) -> list[Block]:
    """Return a table of the jobs as Slurm reports them, unless a table of the exercise already shows them."""
    if record.slurm is None or not record.slurm.jobs:
        return []
    if (
        are_measured
        and exercise is not None
        and any(manifest_table.rows == "metrics.slurm.jobs" for manifest_table in exercise.tables)
    ):
        return []
    rows = map(_row, record.slurm.jobs)
    return [
        table(["job", "state", "reason", "node", number_column("exit code"), number_column("restarts")], rows, title="The jobs")
    ]


def queue(record: RunRecord, files: RunPaths) -> list[Block]:
    """Return the queue as squeue showed it while jobs waited."""
    if record.slurm is None:
        return []
    try:
        picture = read_bounded(files.node_queue(record.nodes[0]), _MAX_QUEUE_BYTES).decode("utf-8", "replace")
    except (OSError, OutsideError):
        return []
    return [Code(clean(picture).rstrip("\n"), title="The queue, as it was")]


def _commands(file: BatchFile) -> list[str]:
    depends = "--dependency=afterok:NUMBER --kill-on-invalid-dep=yes " if file.after else ""
    flags, arguments = (" ".join(map(shlex.quote, words)) for words in (file.flags, file.arguments))
    command_line = " ".join(
        filter(None, (f"sbatch --parsable {depends}".rstrip(), flags, shlex.quote(file.file_name), arguments))
    )
    times = f"    # {file.copies} times" if file.copies > 1 else ""
    return [f"{command_line}{times}{'    # NUMBER: of the array' if file.after else ''}"]


def _row(row: JobRow) -> tuple[Content, ...]:
    asked_for = " (as requested)" if row.asked else ""
    code: Content = Cell(UNICODE.absent, "dim") if row.code is None else str(row.code)
    state = Cell(f"{row.state}{asked_for}", _STYLES.get(row.state, "bad"))
    return row.job, state, row.reason, row.node, code, str(row.restarts)
