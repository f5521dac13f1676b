"""Write the text of a file for sbatch, with a sentence above every line that is not plain shell. A person can also submit the
file by hand."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class SbatchJob:
    """The content of one file.

    `nodes`: the number of machines.
    `tasks`, `gpus`: the numbers of processes and GPUs on each machine.
    `array`: the array's range, such as 0-3%2, or empty.
    `partition`: the partition, or empty.
    `environment`: variables to export.
    `handed_on`: variables that keep the values that sbatch passes on.
    `threads`: the threads of each process. If it is None, the job counts its cores.
    """

    title: str
    name: str
    partition: str
    nodes: int = 1
    tasks: int = 1
    gpus: int = 1
    array: str = ""
    time_s: float
    environment: Mapping[str, str] = field(default_factory=dict)
    handed_on: Sequence[str] = ()
    threads: int | None = None
    max_restarts: int = 0
    command: Sequence[str]

    def has_any(self, *names: str) -> bool:
        """Return whether the job receives one of these variables. If it does, no line has to find the value."""
        return not {*self.environment, *self.handed_on}.isdisjoint(names)


def render(job: SbatchJob) -> str:
    """Return the text of the file, ready for sbatch in a folder that contains work/, logs/ and outputs/."""
    if job.max_restarts:
        command = _elastic(job)
    elif job.nodes * job.tasks > 1:
        command = _spread(job)
    else:
        command = f"{shlex.join(job.command)}\n"
    return "\n".join([_head(job), _requests(job), _body(job), command])


def render_setup(job: SbatchJob) -> str:
    """Return the text of setup.sh, which a learner's batch file reads. It makes the settings that the course's own file
    contains."""
    folder = job.command[0].rpartition("/")[0]
    path = f'export PATH={shlex.quote(folder)}:"$PATH"  # python is the one that has the course\'s packages'
    lines = [
        "# Read by your batch file (source ./setup.sh). Made by gpucourse: settings for the course's scripts.",
        *((path,) if folder else ()),
        'export GPUCOURSE_OUT="$SLURM_SUBMIT_DIR/outputs"  # where the scripts write their results',
        *(f"export {name}={shlex.quote(value)}" for name, value in job.environment.items()),
        *_export_threads(job),
        "# The address at which other nodes reach a node, from its name.",
        "address_of() { scontrol show node \"$1\" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p'; }",
        *_note_end(job),
    ]
    return "\n".join(lines) + "\n"


def time_limit(seconds: float) -> str:
    """Return the time as --time expects it, such as `00:10:00` or `1-02:00:00`, rounded up to the next minute, because Slurm
    counts in minutes."""
    minutes = max(1, math.ceil(seconds / 60))
    days, day_minutes = divmod(minutes, 24 * 60)
    return f"{f'{days}-' if days else ''}{day_minutes // 60:02d}:{day_minutes % 60:02d}:00"


def _head(job: SbatchJob) -> str:
    return (
        "#!/bin/bash\n"
        f"# {job.title}. Made by gpucourse from the exercise's manifest.\n"
        "# By hand: sbatch accepts it in a folder that all nodes share and that has work/ (the scripts), logs/ and outputs/.\n"
        "# Lines that begin with #SBATCH are comments for the shell and requests to Slurm."
    )


def _requests(job: SbatchJob) -> str:
    job_number = "%A_%a" if job.array else "%j"
    number = "%A the array's number, %a the task's" if job.array else "%j is the job's number"
    requests = [("The name in the queue.", f"--job-name={job.name}")]
    if job.partition:
        requests.append(("Which queue: a partition is a group of nodes with its own limits.", f"--partition={job.partition}"))
    if job.array:
        array_reason = "One task for each of these numbers. A number after % limits how many of them run at once."
        requests.append((array_reason, f"--array={job.array}"))
    requests.append(("How many machines. The job waits until it can have all of them.", f"--nodes={job.nodes}"))
    if job.max_restarts:
        requests.append(("On each machine, srun starts one torchrun, which starts the processes.", "--ntasks-per-node=1"))
        if job.tasks > 1:
            requests.append(("CPU cores for these processes.", f"--cpus-per-task={job.tasks}"))
    else:
        requests.append(("How many processes srun starts on each machine.", f"--ntasks-per-node={job.tasks}"))
    if job.gpus:
        requests.append(("GPUs on each machine, for this job alone.", f"--gres=gpu:{job.gpus}"))
    requests += [
        (
            "After this time Slurm ends the job. The shorter the limit, the sooner the job fits into a gap.",
            f"--time={time_limit(job.time_s)}",
        ),
        (f"The file for everything that is printed: {number}, %N the machine.", f"--output=logs/{job_number}-%N.out"),
        (
            "A job that Slurm starts again after a failure appends to its output instead of overwriting it.",
            "--open-mode=append",
        ),
    ]
    return "".join(f"\n# {reason}\n#SBATCH {option}" for reason, option in requests) + "\n"


def _note_end(job: SbatchJob) -> tuple[str, ...]:
    """Return the lines that record the script's exit code.

    When a signal ends bash, bash runs the trap EXIT with the code of its last command, which may be 0. A job that was put back
    into the queue still has the record of its first start.
    """
    number = "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" if job.array else "$SLURM_JOB_ID"
    return (
        "# Record the job's exit code, or 143 after a signal, because Slurm forgets a job after some minutes.",
        f'rm -f "$SLURM_SUBMIT_DIR/ended-{number}"',
        "trap 'exit 143' TERM INT HUP USR1 USR2 XCPU",
        f'trap \'echo "$?" > "$SLURM_SUBMIT_DIR/ended-{number}"\' EXIT',
    )


def _body(job: SbatchJob) -> str:
    lines = [
        "# From here on it is a shell script, which runs once, on the first machine of the job.",
        "set -eu",
        *_note_end(job),
        'cd "$SLURM_SUBMIT_DIR/work"',
        'export GPUCOURSE_OUT="$SLURM_SUBMIT_DIR/outputs"',
        'export GPUCOURSE_NODE="${SLURMD_NODENAME:-}"',
        *(f"export {name}={shlex.quote(value)}" for name, value in job.environment.items()),
        *_export_threads(job),
    ]
    return "\n".join(lines) + "\n"


def _export_threads(job: SbatchJob) -> tuple[str, ...]:
    """Return the line that sets the number of threads of a process, unless the learner typed this variable."""
    if job.has_any("OMP_NUM_THREADS"):
        return ()
    if job.threads is not None:
        count = str(job.threads)
    elif job.tasks == 1:
        count = '"${SLURM_CPUS_ON_NODE:-1}"'
    else:
        count = f'"$((SLURM_CPUS_ON_NODE > {job.tasks} ? SLURM_CPUS_ON_NODE / {job.tasks} : 1))"'
    return (f"export OMP_NUM_THREADS={count}",)


def _choose_interface(job: SbatchJob) -> str:
    """Return the lines that find the network interface, unless the learner typed its variable."""
    return "" if job.has_any("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME") else _INTERFACE


def _spread(job: SbatchJob) -> str:
    return (
        f"{_MEETING_POINT}"
        "\n"
        "# srun starts the command on every machine at once and numbers the processes. torch reads these variables.\n"
        "# --kill-on-bad-exit: when one process fails, Slurm ends the others, which would wait until the time limit.\n"
        "# shellcheck disable=SC2016\n"
        'srun --export=ALL --kill-on-bad-exit=1 --open-mode=append --output="$SLURM_SUBMIT_DIR/logs/%N-rank%t.log" bash -c \'\n'
        '  export RANK="$SLURM_PROCID" WORLD_SIZE="$SLURM_NTASKS" LOCAL_RANK="$SLURM_LOCALID"\n'
        f'  export LOCAL_WORLD_SIZE={job.tasks} GPUCOURSE_NODE="$SLURMD_NODENAME"\n'
        f"{_choose_interface(job)}"
        '  exec "$@"\n'
        f"' bash {shlex.join(job.command)}\n"
    )


def _elastic(job: SbatchJob) -> str:
    """Return the commands for one torchrun on each machine. torchrun's messages go to the job's output. Each rank has one log,
    which continues after a restart."""
    cores = ' --cpus-per-task="$SLURM_CPUS_PER_TASK"' if job.tasks > 1 else ""
    return (
        f"{_MEETING_POINT}"
        "\n"
        "# Each rank has its own log, with a line before each restart. Its start and its end are recorded in ranks/.\n"
        'rm -rf "$SLURM_SUBMIT_DIR/ranks"\n'
        'mkdir "$SLURM_SUBMIT_DIR/ranks"\n'
        "# shellcheck disable=SC2016\n"
        "export rank_command='\n"
        '  log="$SLURM_SUBMIT_DIR/logs/$SLURMD_NODENAME-rank$RANK.log" life="$TORCHELASTIC_RESTART_COUNT"\n'
        '  if [ "$life" -gt 0 ]; then\n'
        '    [ -z "$(tail -c 1 "$log")" ] || echo >> "$log"\n'
        '    echo "--- restart $life ---" >> "$log"\n'
        "  fi\n"
        '  echo "- $SLURMD_NODENAME -" > "$SLURM_SUBMIT_DIR/ranks/$RANK-$life"\n'
        '  "$@" >> "$log" 2>&1 && code=0 || code=$?\n'
        '  echo "$code $SLURMD_NODENAME $(date +%s.%N)" > "$SLURM_SUBMIT_DIR/ranks/$RANK-$life"\n'
        '  exit "$code"\n'
        "'\n"
        "\n"
        "# srun starts one torchrun on every machine. torchrun starts the ranks, and restarts all of them when one fails.\n"
        "# --kill-on-bad-exit: when one torchrun gives up, Slurm ends the others, which would wait until the time limit.\n"
        "# shellcheck disable=SC2016\n"
        f"srun --export=ALL --label --ntasks-per-node=1{cores} --kill-on-bad-exit=1 bash -c '\n"
        '  export GPUCOURSE_NODE="$SLURMD_NODENAME"\n'
        f"{_choose_interface(job)}"
        '  exec "$1" -m torch.distributed.run --nnodes="$SLURM_NNODES" --node-rank="$SLURM_NODEID" \\\n'
        f'    --nproc-per-node={job.tasks} --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" \\\n'
        f'    --max-restarts={job.max_restarts} --no-python bash -c "$rank_command" bash "$@"\n'
        f"' bash {shlex.join(job.command)}\n"
    )


_MEETING_POINT = (
    "# Where all processes meet: at the first machine, under the address that Slurm itself uses, on a port of this job.\n"
    'hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")\n'
    "MASTER_ADDR=$(scontrol show node \"${hosts%%$'\\n'*}\" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p')\n"
    "export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\n"
)
_INTERFACE = (
    "  # The interface that leads to that machine, or has its address: NCCL and gloo might choose another one.\n"
    '  own=$(ip -o -4 addr show to "$MASTER_ADDR" 2>/dev/null | sed -n "s/^[0-9]*: *\\([^ ]*\\) .*/\\1/p;q")\n'
    '  way=$(ip -o -4 route get "$MASTER_ADDR" 2>/dev/null | sed -n "s/.* dev \\([^ ]*\\) .*/\\1/p;q")\n'
    '  [ -z "${own:-$way}" ] || export NCCL_SOCKET_IFNAME="${own:-$way}" GLOO_SOCKET_IFNAME="${own:-$way}"\n'
)
