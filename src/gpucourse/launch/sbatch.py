"""Write the text of a file for sbatch, with a sentence above every line that is not plain shell. A person can also submit the
file by hand."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpucourse.launch.launcher import ClusterSite
from gpucourse.launch.planning import RANK

PYTHON, NODE_RANK, ADDRESS, PORT = (f"@gpucourse:{name}@" for name in ("python", "node-rank", "address", "port"))
"""Placeholders in a command: whole words, or parts of words. In the file, the first is replaced by the Python of the jobs, and
the others by variables of the job."""

_VARIABLES = {NODE_RANK: '"$SLURM_NODEID"', ADDRESS: '"$MASTER_ADDR"', PORT: '"$MASTER_PORT"'}
_HANDED_ON = frozenset({"account", "partition", "qos", "reservation", "constraint", "clusters"})
_EXPANDABLE = re.compile(r"[\w@%+=:,./${}~-]+")


@dataclass(frozen=True, kw_only=True)
class StartCommand:
    """The command of a launcher that starts the ranks inside a job.

    `name`: the program's name in comments.
    `argv`: the words of the command, which may contain the placeholder RANK. The words after it are what each rank executes.
    `variables`: the command's environment variables in addition to the job's.
    `once`: the command runs on the first machine only.
    """

    name: str
    argv: Sequence[str]
    variables: Mapping[str, str]
    once: bool = False


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
    `command`: the command of a process, in which PYTHON is a placeholder for its interpreter.
    `python`: that interpreter, as shell text.
    `start`: the launcher that starts the processes. If it is None, srun starts them.
    `site`: what the learner's settings for the cluster add.
    `removes_temporary`: whether each machine of the job gets a folder for temporary files, which is removed at the end.
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
    command: Sequence[str]
    python: str = "python3"
    start: StartCommand | None = None
    site: ClusterSite = field(default_factory=ClusterSite)
    removes_temporary: bool = False

    def has_any(self, *names: str) -> bool:
        """Return whether the job receives any of these variables. If it does, the file needs no lines to compute them."""
        return not {*self.environment, *self.handed_on}.isdisjoint(names)


def render(job: SbatchJob) -> str:
    """Return the text of the file, ready for sbatch in a folder that contains work/, logs/ and outputs/."""
    if job.start is not None:
        command = _start(job, job.start)
    elif not _is_one_process(job):
        command = _spread(job)
    else:
        srun = f"srun {_pyxis(job)}" if job.site.pyxis else ""
        command = f"{srun}{enter(job.site)}{_join(job, job.command)}\n"
        command = f"{_TEMPORARY}\n{command}" if job.removes_temporary else command
    return "\n".join([_head(job), _requests(job), _body(job), command])


def _is_one_process(job: SbatchJob) -> bool:
    return job.start is None and job.nodes * job.tasks == 1


def render_setup(job: SbatchJob) -> str:
    """Return the text of setup.sh, which a learner's batch file reads. The text contains the same settings as the course's own
    file."""
    folder = job.python.rpartition("/")[0] if job.python.startswith("/") else ""
    path = f'"$SLURM_SUBMIT_DIR/bin:"{folder}{":" if folder else ""}"$PATH"'
    lines = [
        "# Read by your batch file (source ./setup.sh). Made by gpucourse: settings for the course's scripts.",
        *_set_up(job.site),
        f"export PATH={path}  # python is the one that has the course's packages",
        'export GPUCOURSE_OUT="$SLURM_SUBMIT_DIR/outputs"  # where the scripts write their results',
        *(f"export {name}={shlex.quote(value)}" for name, value in job.environment.items()),
        *_export_threads(job),
        *_export_options(job.site),
        "# The address at which other nodes reach a node, from its name.",
        "address_of() { scontrol show node \"$1\" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p'; }",
        *_note_end(job),
    ]
    return "\n".join(lines) + "\n"


def render_array(texts: Sequence[str]) -> str:
    """Return the text of a file that submits several files of `render` as one job array. Its task N starts `job.sbatch` in the
    folder tasks/N.

    Return an empty string if the files request different resources, because all tasks of an array get the same.
    """
    requests = [_list_shared_requests(text) for text in texts]
    if any(other != requests[0] for other in requests):
        return ""
    login = " -l" if texts[0].startswith("#!/bin/bash -l") else ""
    lines = [
        "#!/bin/bash",
        "# The runs of a sweep as one job array. Made by gpucourse. Each task is one run; all request the same.",
        *requests[0],
        f"#SBATCH --array=0-{len(texts) - 1}",
        "# The file for everything that is printed, in the folder of the task's run: tasks/ has a link to each of them.",
        "#SBATCH --output=tasks/%a/logs/%A_%a-%N.out",
        "",
        "set -eu",
        'cd -P "$SLURM_SUBMIT_DIR/tasks/$SLURM_ARRAY_TASK_ID"',
        'export SLURM_SUBMIT_DIR="$PWD"',
        f"exec bash{login} job.sbatch",
    ]
    return "\n".join(lines) + "\n"


def _list_shared_requests(text: str) -> list[str]:
    """Return the #SBATCH options of a file, except those that differ between tasks."""
    lines = [line for line in text.splitlines() if line.startswith("#SBATCH ")]
    return [line for line in lines if not line.startswith(("#SBATCH --array=", "#SBATCH --output="))]


def time_limit(seconds: float) -> str:
    """Return the time as --time expects it, such as `00:10:00` or `1-02:00:00`, rounded up to the next minute, because Slurm
    counts in minutes."""
    minutes = max(1, math.ceil(seconds / 60))
    days, day_minutes = divmod(minutes, 24 * 60)
    return f"{f'{days}-' if days else ''}{day_minutes // 60:02d}:{day_minutes % 60:02d}:00"


def _export_options(site: ClusterSite) -> tuple[str, ...]:
    """Return the lines that pass the settings of a cluster to jobs that the job itself submits."""
    pairs = (flag.removeprefix("--").partition("=") for flag in site.flags)
    exports = [f"export SBATCH_{name.upper()}={shlex.quote(value)}" for name, _, value in pairs if name in _HANDED_ON]
    return ("# The settings of your cluster, for jobs that this job submits.", *exports) if exports else ()


def render_session(site: ClusterSite, partition: str = "") -> str:
    """Return the text of setup.sh for a terminal, whose shell reads it instead of ~/.bashrc.

    `partition`: the partition of the terminal. Jobs that are submitted in the terminal go to the same partition.
    """
    lines = (
        "# Read by the shell of this session. Made by gpucourse.",
        *(("# The command module is defined in a file that only login shells read.", ". /etc/profile") if site.setup else ()),
        "[ ! -f ~/.bashrc ] || . ~/.bashrc",
        *_set_up(site),
        'export PATH="${GPUCOURSE_OUT%/*}/bin:$PATH"  # python is the one that has the course\'s packages',
        *_export_options(replace(site, flags=(f"--partition={partition}", *site.flags) if partition else site.flags)),
    )
    return "\n".join(lines) + "\n"


def expand(text: str) -> str:
    """Return a text from the settings as a shell word in which variables and a leading ~ are expanded."""
    if not _EXPANDABLE.fullmatch(text):
        return shlex.quote(text)
    home = "$HOME/" + text[2:] if text.startswith("~/") else text
    return f'"{home}"' if "$" in home else home


def _set_up(site: ClusterSite) -> tuple[str, ...]:
    """Return the learner's lines from the settings. They may fail, and may use unset variables."""
    return ("# From the settings of your cluster.", *site.setup) if site.setup else ()


def enter(site: ClusterSite) -> str:
    """Return the words before a command that runs in a container of Apptainer. The container sees the course's folder on the
    cluster, which has the runs and the caches."""
    return write_apptainer(site.apptainer, '"${GPUCOURSE_OUT%/jobs/*}"') if site.apptainer else ""


def write_apptainer(image: str, folder: str) -> str:
    """Return the words before a command in a container of this image. The container sees `folder`, a path as shell text."""
    return f"apptainer exec --nv --bind {folder} {expand(image)} "


def _pyxis(job: SbatchJob) -> str:
    """Return the options of srun for a container of Pyxis."""
    return write_pyxis(job.site.pyxis, "${SLURM_SUBMIT_DIR%/jobs/*}", "$SLURM_SUBMIT_DIR/work") if job.site.pyxis else ""


def write_pyxis(image: str, folder: str, start: str) -> str:
    """Return the options of srun for a container of this image. The container sees `folder`, and starts in `start`."""
    return f'--container-image={expand(image)} --container-mounts="{folder}:{folder}" --container-workdir="{start}" '


def _join(job: SbatchJob, words: Sequence[str]) -> str:
    """Return the words as shell text, with the placeholders replaced by the Python and the variables of the job."""
    return " ".join(_spell(job, word) for word in words)


def _spell(job: SbatchJob, word: str) -> str:
    if word == PYTHON:
        return job.python
    if word == RANK:
        return 'bash -c "$rank_command" bash'
    text = shlex.quote(word)
    for name, variable in _VARIABLES.items():
        text = text.replace(name, variable)
    return text


def _head(job: SbatchJob) -> str:
    return (
        f"#!/bin/bash{' -l' if job.site.setup else ''}\n"
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
        array_reason = "One task for each of these numbers. A number after % limits how many run at the same time."
        requests.append((array_reason, f"--array={job.array}"))
    requests.append(("How many machines. The job waits until it can have all of them.", f"--nodes={job.nodes}"))
    if job.start is not None and not job.start.once:
        name = job.start.name
        requests.append((f"On each machine, srun starts one {name}, which starts the processes.", "--ntasks-per-node=1"))
        if job.tasks > 1 and _chooses_cores(job):
            requests.append(("CPU cores for these processes.", f"--cpus-per-task={job.tasks * (job.site.cores or 1)}"))
        elif job.site.cores:
            requests.append(("CPU cores for the process.", f"--cpus-per-task={job.site.cores}"))
    else:
        requests.append(
            (f"How many processes {'run' if job.start else 'srun starts'} on each machine.", f"--ntasks-per-node={job.tasks}")
        )
        if job.site.cores:
            requests.append(("CPU cores for each process.", f"--cpus-per-task={job.site.cores}"))
    if job.gpus and not job.site.requests_gpus:
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


def _note_end(job: SbatchJob, clean_up: str = "") -> tuple[str, ...]:
    """Return the shell lines that record the script's exit code and then run `clean_up`.

    After a signal, bash would run the EXIT trap with the code of its last command, which may be 0. So the lines trap signals
    as well. They first remove the old record, because a job that was put back into the queue still has the record of its
    first start.
    """
    number = "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" if job.array else "$SLURM_JOB_ID"
    return (
        "# Record the job's exit code, or 143 after a signal, because Slurm forgets a job after some minutes.",
        f'rm -f "$SLURM_SUBMIT_DIR/ended-{number}"',
        "trap 'exit 143' TERM INT HUP USR1 USR2 XCPU",
        f'trap \'echo "$?" > "$SLURM_SUBMIT_DIR/ended-{number}"{clean_up}\' EXIT',
    )


def _body(job: SbatchJob) -> str:
    lines = [
        "# From here on it is a shell script, which runs once, on the first machine of the job.",
        "set -eu",
        *_note_end(job, _REMOVE if _is_one_process(job) and job.removes_temporary else ""),
        *(("set +eu", *_set_up(job.site), "set -eu") if job.site.setup else ()),
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
    cores = '--cpus-per-task="$SLURM_CPUS_PER_TASK" ' if job.site.cores else ""
    return (
        f"{_MEETING_POINT}"
        "\n"
        "# srun starts the command on every machine at the same time and numbers the processes. torch reads these variables.\n"
        "# --kill-on-bad-exit: when one process fails, Slurm ends the others, which would wait until the time limit.\n"
        "# shellcheck disable=SC2016\n"
        'srun --export=ALL --kill-on-bad-exit=1 --open-mode=append --output="$SLURM_SUBMIT_DIR/logs/%N-rank%t.log" '
        f"{cores}{_pyxis(job)}bash -c '\n"
        '  export RANK="$SLURM_PROCID" WORLD_SIZE="$SLURM_NTASKS" LOCAL_RANK="$SLURM_LOCALID"\n'
        f'  export LOCAL_WORLD_SIZE={job.tasks} GPUCOURSE_NODE="$SLURMD_NODENAME"\n'
        f"{_choose_interface(job)}"
        f"{_finish_command(job)}"
        f"' bash {enter(job.site)}{_join(job, job.command)}\n"
    )


def _start(job: SbatchJob, start: StartCommand) -> str:
    """Return the commands for a launcher, which runs once on each machine or only on the first one. Its own messages go to the
    job's output. Each rank has one log, which continues after a restart."""
    exports = "".join(f"  export {name}={_spell(job, value)}\n" for name, value in start.variables.items())
    place = start.argv.index(RANK) + 1
    launcher, process = (_join(job, words) for words in (start.argv[:place], start.argv[place:]))
    if start.once:
        comment = f"# {start.name} starts the processes on every machine of the job."
        ranks = _RANK_COMMAND.replace('  "$@" >>', f'{_TEMPORARY_OF_TASK}  "$@" >>') if job.removes_temporary else _RANK_COMMAND
        return f"{_MEETING_POINT}\n{ranks}\n{comment}\n{enter(job.site)}{launcher} {process}\n"
    inner = f"\n{_choose_interface(job)}{exports}{_finish_command(job, f'{enter(job.site)}{launcher} ')}"
    cores = ' --cpus-per-task="$SLURM_CPUS_PER_TASK"' if (job.tasks > 1 and _chooses_cores(job)) or job.site.cores else ""
    srun = f"srun --export=ALL --label --ntasks-per-node=1{cores} --kill-on-bad-exit=1 {_pyxis(job)}"
    return (
        f"{_MEETING_POINT}\n{_RANK_COMMAND}\n"
        f"# srun starts one {start.name} on every machine. {start.name} starts the ranks.\n"
        f"# --kill-on-bad-exit: when one {start.name} gives up, Slurm ends the others, which would wait until the time limit.\n"
        "# shellcheck disable=SC2016\n"
        f"{srun}bash -c {shlex.quote(inner)} bash {process}\n"
    )


def _chooses_cores(job: SbatchJob) -> bool:
    """Return whether the file may request cores: only if the learner's options do not request any."""
    return not any(flag.startswith("--cpus-per-") for flag in job.site.flags)


def _finish_command(job: SbatchJob, words: str = "") -> str:
    """Return the last lines of a command of srun, which run `words` and the command's arguments."""
    if not job.removes_temporary:
        return f'  exec {words}"$@"\n'
    return f'{_TEMPORARY_OF_TASK}  {words}"$@"\n'


_REMOVE = '; rm -rf "${temporary:-}"'
_TEMPORARY = (
    "# The folder for temporary files of this job, which it removes at its end.\n"
    'temporary=$(mktemp -d "${TMPDIR:-/tmp}/gpucourse-XXXXXX")\n'
    'export TMPDIR="$temporary"\n'
)
_TEMPORARY_OF_TASK = (
    "  # The folder for temporary files of this command, which is removed when the command ends.\n"
    '  TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/gpucourse-XXXXXX") || exit\n'
    "  export TMPDIR\n"
    "  trap : TERM INT HUP USR1 USR2 XCPU\n"
    '  trap "rm -rf \\"\\$TMPDIR\\"" EXIT\n'
)
_RANK_COMMAND = (
    "# Each rank has its own log, with a line before each restart. Its start and its end are recorded in ranks/.\n"
    'rm -rf "$SLURM_SUBMIT_DIR/ranks"\n'
    'mkdir "$SLURM_SUBMIT_DIR/ranks"\n'
    "# shellcheck disable=SC2016\n"
    "export rank_command='\n"
    '  RANK="${RANK:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}}" life="${TORCHELASTIC_RESTART_COUNT:-0}"\n'
    '  log="$SLURM_SUBMIT_DIR/logs/$SLURMD_NODENAME-rank$RANK.log"\n'
    '  export GPUCOURSE_NODE="$SLURMD_NODENAME"\n'
    '  if [ "$life" -gt 0 ]; then\n'
    '    [ -z "$(tail -c 1 "$log")" ] || echo >> "$log"\n'
    '    echo "--- restart $life ---" >> "$log"\n'
    "  fi\n"
    '  echo "- $SLURMD_NODENAME -" > "$SLURM_SUBMIT_DIR/ranks/$RANK-$life"\n'
    '  "$@" >> "$log" 2>&1 && code=0 || code=$?\n'
    '  echo "$code $SLURMD_NODENAME $(date +%s.%N)" > "$SLURM_SUBMIT_DIR/ranks/$RANK-$life"\n'
    '  exit "$code"\n'
    "'\n"
)
_MEETING_POINT = (
    "# Where all processes meet: at the first machine, under the address that Slurm itself uses, on a port of this job.\n"
    'hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")\n'
    "MASTER_ADDR=$(scontrol show node \"${hosts%%$'\\n'*}\" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p')\n"
    "export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\n"
)
_INTERFACE = (
    "  # The interface that leads to that machine, or has its address: NCCL and gloo might choose another one.\n"
    '  at=$(getent ahostsv4 "$MASTER_ADDR" 2>/dev/null | sed "s/ .*//;q")\n'
    '  [ "$at" = "$MASTER_ADDR" ] || case "$at" in 127.*) at=192.0.2.1 ;; esac  # its own name: take the default route\n'
    '  own=$(ip -o -4 addr show to "${at:-$MASTER_ADDR}" 2>/dev/null | sed -n "s/^[0-9]*: *\\([^ ]*\\) .*/\\1/p;q")\n'
    '  way=$(ip -o -4 route get "${at:-$MASTER_ADDR}" 2>/dev/null | sed -n "s/.* dev \\([^ ]*\\) .*/\\1/p;q")\n'
    '  [ -z "${own:-$way}" ] || export NCCL_SOCKET_IFNAME="${own:-$way}" GLOO_SOCKET_IFNAME="${own:-$way}"\n'
)
