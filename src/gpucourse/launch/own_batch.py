"""A batch file of the learner's own: sbatch takes it as it is, and only what is needed to follow it is typed beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from gpucourse.errors import UsageError
from gpucourse.launch import sbatch, slurm_plan
from gpucourse.launch.planning import LaunchRequest
from gpucourse.model.node import Node
from gpucourse.model.plan import Batch, BatchFile, LaunchPlan, NodeCommand

SUFFIXES = (".sbatch", ".slurm")
FOLLOWED = ("--chdir=work", "--output=../logs/%j-%N.out", "--open-mode=append")
"""Where the job starts, and where its output is followed: typed after sbatch, they overrule the file."""

_WISH = re.compile(r"^#SBATCH\s+(.*)$", re.MULTILINE)
_NODES = re.compile(r"(?:^|\s)(?:--nodes[=\s]|-N\s*)(\d+)")
_GPUS = re.compile(r"(?:^|\s)--(?:gres[=\s]gpu(?::[a-z]\w*)?:|gpus-per-node[=\s](?:[a-z]\w*:)?)(\d+)")
_PARTITION = re.compile(r"(?:^|\s)(?:--partition[=\s]|-p\s*)(\S+)")
_ERROR = re.compile(r"""(?:^|\s)(?:--error[=\s]\s*|-e\s*)(?:"([^"]+)"|'([^']+)'|([^\s"']+))""", re.MULTILINE)
_EXPORT = re.compile(r"(?:^|\s)--export[=\s](\S+)")
_ARRAY = re.compile(r"(?:^|\s)(?:--array\b|-a\s*\d)")


@dataclass(frozen=True, kw_only=True)
class OwnBatch:
    """What a file asks for in its #SBATCH lines, as far as it is shown or followed: `partition` is empty where it names none,
    and so is `error`, the file for what the job writes on standard error."""

    text: str
    nodes: int
    gpus: int
    partition: str
    error: str = ""


def is_batch(script: Path | None) -> bool:
    """Whether a script is one for sbatch, by its name: job.sbatch, job.slurm."""
    return script is not None and script.suffix in SUFFIXES


def read(script: Path) -> OwnBatch:
    """The file and its wishes. Raises UsageError for an array, and for a file that cannot be read."""
    try:
        text = script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--script {script}: {error}", hint="name a batch file on this computer") from error
    wishes = "\n".join(_WISH.findall(text))
    if _ARRAY.search(wishes):
        raise UsageError(
            f"{script.name} is an array, whose tasks cannot be followed from a file of your own",
            hint="gpucourse run 2.4 makes arrays; by hand: gpucourse ssh 2, then sbatch there",
        )
    partition, errors = _PARTITION.search(wishes), _ERROR.search(wishes)
    return OwnBatch(
        text=text,
        nodes=_number(_NODES, wishes, 1),
        gpus=_number(_GPUS, wishes, 0),
        partition=partition[1] if partition else "",
        error=next(filter(None, errors.groups()), "") if errors else "",
    )


def plan(
    request: LaunchRequest,
    head: Node,
    own: OwnBatch,
    *,
    nodes: int | None,
    partition: str,
    default: str,
    time_s: float | None,
    module: str,
) -> LaunchPlan:
    """The launch plan for such a file. `nodes`, `partition` and `time_s` are what the learner typed, where they did, and
    overrule the file; `default` is the partition that the cluster takes where nobody names one."""
    typed = (
        f"--nodes={nodes}" if nodes else "",
        f"--partition={partition}" if partition else "",
        f"--time={sbatch.time_limit(time_s)}" if time_s else "",
    )
    export = _export_also(own, (*request.environment, *request.handed_on))
    flags = (*filter(None, typed), *export, *FOLLOWED)
    file = BatchFile(name="job", text=own.text, flags=flags, arguments=request.arguments, error=own.error)
    where = partition or own.partition or default
    batch = Batch(partition=where, nodes=nodes or own.nodes, tasks=1, gpus=own.gpus, files=(file,), module=module)
    argv = (*slurm_plan.SUBMIT, *flags, f"{file.name}.sbatch", *request.arguments)
    command = NodeCommand(node=head, argv=argv, env=request.environment, ranks=tuple(range(batch.nodes)))
    return slurm_plan.make_plan(request, command, batch, "dry-run")


def _export_also(own: OwnBatch, names: tuple[str, ...]) -> tuple[str, ...]:
    """What lets a job have these variables of whoever submits it, where its file says which ones it has: sbatch gives it all
    of them otherwise."""
    wish = _EXPORT.search("\n".join(_WISH.findall(own.text)))
    if wish is None or not names or "ALL" in wish[1].split(","):
        return ()
    kept = [word for word in wish[1].split(",") if word not in {"NONE", "NIL"}]
    return (f"--export={','.join([*kept, *names])}",)


def _number(pattern: re.Pattern[str], wishes: str, default: int) -> int:
    match = pattern.search(wishes)
    return int(match[1]) if match else default
