"""Judge a batch file: its options are read as sbatch reads them, and its body runs with programs that only record calls."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gpucourse.judge.part import Part
from gpucourse.judge.verdict import Verdict
from gpucourse.outside.slurm_options import VALUES_OF_OWN_WORD, OptionRefused, SlurmOptions, read_file, read_words

NOTED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID", "SLURM_ARRAY_TASK_ID",
         "GPUCOURSE_OUT", "SLURMD_NODENAME", "SLURM_STEP_ID")  # fmt: skip
PROGRAMS = ("python", "python3", "torchrun", "sbatch", "salloc", "squeue", "scancel", "sinfo", "nvidia-smi", "gpucourse")
SHELL_S = 15.0  # a job script takes milliseconds; other programs may keep the processors busy
MAX_CALLS = 200
FIRST_JOB = "4711"

NOTE = r"""#!/bin/bash
note=("${0##*/}" "$PWD" "$#" "$@")
for name in $NOTED_NAMES; do note+=("${!name-}"); done
printf '%s\0' "${note[@]}" >> "$NOTES"
[ "${0##*/}" = srun ] || exit "$ENDS_WITH"
"""

_SRUN = (
    NOTE
    + r"""
nodes=$SLURM_JOB_NUM_NODES tasks= names=
while (($#)); do
  case "$1" in
    --) shift; break;;
    -n|--ntasks) tasks=$2; shift 2;;
    --ntasks=*) tasks=${1#*=}; shift;;
    -n[0-9]*) tasks=${1#-n}; shift;;
    -N|--nodes) nodes=$2; shift 2;;
    --nodes=*) nodes=${1#*=}; shift;;
    -N[0-9]*) nodes=${1#-N}; shift;;
    -w|--nodelist) names=$2; shift 2;;
    --nodelist=*) names=${1#*=}; shift;;
    -w?*) names=${1#-w}; shift;;
    @VALUES@) shift 2;;
    -?*) shift;;
    *) break;;
  esac
done
each=$SLURM_NTASKS_PER_NODE
if [ -z "$tasks" ]; then tasks=$((nodes * each)); else each=$(((tasks + nodes - 1) / nodes)); fi
case "$names" in *\[*) names=;; esac  # such as node[1-2]
IFS=, read -ra names <<< "$names"
echo >> "$NOTES.steps"
export SLURM_NTASKS=$tasks SLURM_NPROCS=$tasks SLURM_NNODES=$nodes SLURM_STEP_ID=$(($(wc -l < "$NOTES.steps") - 1))
for ((task = 0; task < tasks; task++)); do
  export SLURM_PROCID=$task SLURM_LOCALID=$((task % each)) SLURM_NODEID=$((task / each))
  export SLURMD_NODENAME=${names[task / each]:-node$((task / each + 1))}
  "$@" || exit
done
"""
).replace("@VALUES@", "|".join(sorted(VALUES_OF_OWN_WORD - {"-n", "--ntasks", "-N", "--nodes", "-w", "--nodelist"})))

_SCONTROL = r"""#!/bin/bash
while [[ "${1-}" == -* ]]; do shift; done
case "${1-} ${2-}" in
  "show host"*) for ((node = 1; node <= SLURM_JOB_NUM_NODES; node++)); do echo "node$node"; done;;
  "show node"*) echo "NodeName=$3 NodeAddr=10.0.0.${3#node} NodeHostName=$3";;
esac
"""

_HOSTNAME = r"""#!/bin/bash
case "${1-}" in
  -i|-I|--ip-address|--all-ip-addresses) echo "10.0.0.${SLURMD_NODENAME#node}";;
  *) echo "$SLURMD_NODENAME";;
esac
"""

_SETUP = r"""export GPUCOURSE_OUT="$SLURM_SUBMIT_DIR/outputs"
address_of() { scontrol show node "$1" | sed -n 's/.*NodeAddr=\([^ ]*\).*/\1/p'; }
"""


_AT_EXIT = """unset BASH_ENV
trap 'set +u; [ -z "$!" ] || : > "$BACKGROUND"' EXIT
"""


@dataclass(frozen=True)
class Call:
    """A program that the body of a file called.

    It contains the words after the program's name, the folder of the call, and the variables in NOTED that were set.
    """

    program: str
    words: tuple[str, ...]
    folder: Path
    variables: Mapping[str, str]

    def runs(self, script: str, submitted_in: Path) -> bool:
        """Return whether the call runs the course's script, with a path that is valid in the folder of the call."""
        path = (submitted_in / "work" / script).resolve()
        return any((self.folder / word).resolve() == path for word in self.words if word.endswith(script))

    def value(self, flag: str) -> str | None:
        """Return the value of a flag of the script (--flag=VALUE or --flag VALUE), or None without the flag. As in argparse,
        the last value counts."""
        value = None
        for word, following in zip(self.words, (*self.words[1:], None), strict=True):
            if word.startswith(f"{flag}="):
                value = word.partition("=")[2]
            elif word == flag and following is not None:
                value = following
        return value


@dataclass(frozen=True)
class Execution:
    """The result of executing a body: its calls in order, the folder where it was submitted, its exit code, its last error
    line, and whether bash started something in the background."""

    calls: tuple[Call, ...]
    folder: Path
    code: int
    errors: str
    background: bool = False

    def find_calls(self, program: str) -> list[Call]:
        """Return the calls of the program with this name."""
        return [call for call in self.calls if call.program == program]

    def find_srun(self, call: Call) -> Call | None:
        """Return the call of srun that started `call`, or None if the shell of the file did."""
        step = call.variables.get("SLURM_STEP_ID")
        return self.find_calls("srun")[int(step)] if step else None

    def list_runs_of(self, script: str) -> list[Call]:
        """Return the calls that run the course's script. Calls of srun are left out, because srun only starts the script."""
        return [call for call in self.calls if call.program != "srun" and call.runs(script, self.folder)]


@dataclass(frozen=True, kw_only=True)
class Place:
    """The conditions under which Slurm would execute a body.

    `nodes`: the number of machines.
    `per_node`: the number of processes on each machine.
    `array_task`: the number of the body's task in an array of tasks from 0 to `last_task`. The task has its own job number
    (`task_job`), which differs from the array's (`job`).
    `arguments`: words after the file's name.
    `files`: the files in work/.
    `ends_with`: the exit code of every program that the body calls.
    `programs`: the texts of programs that replace the default ones, by name.
    `texts`: files in the folder where the body starts, by name.
    """

    nodes: int = 1
    per_node: int = 1
    array_task: int | None = None
    last_task: int = 0
    arguments: Sequence[str] = field(default_factory=tuple)
    files: Sequence[str] = field(default_factory=tuple)
    ends_with: int = 0
    job: str = FIRST_JOB
    programs: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def task_job(self) -> str:
        """Return the number of the task's own job."""
        return str(int(self.job) + 1 + (self.array_task or 0))

    def variables(self) -> dict[str, str]:
        """Return the variables that Slurm sets for the body."""
        names = f"node[1-{self.nodes}]" if self.nodes > 1 else "node1"
        variables = {
            "SLURM_JOB_ID": self.job, "SLURM_JOB_NODELIST": names, "SLURM_NODELIST": names, "SLURM_JOB_PARTITION": "gpu",
            "SLURM_JOB_NUM_NODES": str(self.nodes), "SLURM_NNODES": str(self.nodes), "SLURMD_NODENAME": "node1",
            "SLURM_NTASKS": str(self.nodes * self.per_node), "SLURM_NTASKS_PER_NODE": str(self.per_node), "SLURM_PROCID": "0",
            "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_CPUS_ON_NODE": "1", "CUDA_VISIBLE_DEVICES": "0",
        }  # fmt: skip
        if self.array_task is not None:
            variables |= {
                "SLURM_ARRAY_TASK_ID": str(self.array_task), "SLURM_ARRAY_JOB_ID": self.job, "SLURM_JOB_ID": self.task_job,
                "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": str(self.last_task),
                "SLURM_ARRAY_TASK_COUNT": str(self.last_task + 1),
            }  # fmt: skip
        return variables


def read_options(part: Part) -> SlurmOptions:
    """Return the options of the learner's batch file.

    Raises Verdict if sbatch refuses the file. If sbatch would not see a request, the verdict has the way "below-command".
    """
    if not is_written(part.text):
        raise Verdict("open", sentence="no request and no command yet: begin with the lines #SBATCH --...")
    try:
        options = read_file(part.text)
        _ = options.seconds, options.array
    except OptionRefused as error:
        place = f"{part.file.name}:{error.line}: " if error.line else ""
        raise Verdict("failed", "refused", f"{place}sbatch refuses the file: {error}") from None
    if options.unread:
        number, line = options.unread[0]
        raise part.wrong("below-command", line=line.strip(), number=number)
    return options


@contextmanager
def blame_comments(options: SlurmOptions) -> Iterator[None]:
    """Replace a verdict that the block raises if the file has lines that look like requests but that sbatch ignores. The new
    verdict gives the first of these lines as the reason."""
    try:
        yield
    except Verdict:
        if not options.nearly:
            raise
        number, line = options.nearly[0]
        complaint = f"line {number}, '{line}', is only a comment for sbatch: a request begins with #SBATCH, in the first column"
        raise Verdict("failed", "nearly", f"{complaint}, with one # and in capitals") from None


def is_written(text: str, setup: str = "setup.sh") -> bool:
    """Return whether a file contains anything besides comments and the course's line that sources `setup`. `#SBATCH` lines
    count."""
    lines = (line.strip() for line in text.splitlines())
    return any(line.startswith("#SBATCH") or (line and not line.startswith("#") and not line.endswith(setup)) for line in lines)


def read_srun(call: Call) -> SlurmOptions:
    """Return the options of a call of srun. Raises Verdict if srun refuses the call."""
    try:
        return read_words(call.words)
    except OptionRefused as error:
        raise Verdict("failed", "refused", f"srun refuses it: {error}") from None


def execute(part: Part, place: Place, *, case: str = "") -> Execution:
    """Return what the learner's file does when Slurm starts it. Raises Verdict if it cannot be started or does not end."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-batch-") as name:
        root = Path(name).resolve()
        folder = root / "run"
        for folder_name in ("programs", "spool", "run/work", "run/logs", "run/outputs"):
            (root / folder_name).mkdir(parents=True)
        _put_programs(root / "programs", place.programs)
        for file, text in {"setup.sh": _SETUP, **place.texts}.items():
            (folder / file).write_text(text, encoding="utf-8")
        for file in place.files:
            (folder / "work" / file).touch()
        copy, notes, background = root / "spool" / "slurm_script", root / "notes", root / "background"
        (root / "at_exit").write_text(_AT_EXIT, encoding="utf-8")
        copy.write_text(part.text, encoding="utf-8")  # slurmd starts a copy, too
        variables = {
            "PATH": f"{root / 'programs'}:{os.environ.get('PATH', '/usr/bin:/bin')}", "HOME": str(root), "NOTES": str(notes),
            "NOTED_NAMES": " ".join(NOTED), "SLURM_SUBMIT_DIR": str(folder), "LC_ALL": "C",
            "ENDS_WITH": str(place.ends_with), "BASH_ENV": str(root / "at_exit"), "BACKGROUND": str(background),
            **place.variables(),
        }  # fmt: skip
        result = _start(part, [*_interpreter(part.text), str(copy), *place.arguments], folder, variables, case)
        errors = _last_line(result.stderr, copy, part.file.name)
        return Execution(_read_notes(notes), folder, result.returncode, errors, background.exists())


def _start(
    part: Part, words: list[str], folder: Path, variables: dict[str, str], case: str
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SHELL_S,
            check=False,
        )
    except OSError as error:
        raise Verdict("failed", "refused", f"{part.file.name}:1: {words[0]} cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise Verdict("failed", "endless", f"{part.file.name}: the shell did not end within {SHELL_S:g} s", case) from None


def _interpreter(text: str) -> list[str]:
    """Return the interpreter in the first line; bash if there is none, as in a shell."""
    first = text.split("\n", 1)[0]
    return (first[2:].split() if first.startswith("#!") else []) or ["bash"]


def _put_programs(folder: Path, own_texts: Mapping[str, str]) -> None:
    texts = {"srun": _SRUN, "scontrol": _SCONTROL, "hostname": _HOSTNAME, **dict.fromkeys(PROGRAMS, NOTE), **own_texts}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o700)


def _read_notes(notes: Path) -> tuple[Call, ...]:
    words = notes.read_text(encoding="utf-8", errors="replace").split("\0")[:-1] if notes.is_file() else []
    calls: list[Call] = []
    while words and len(calls) < MAX_CALLS:
        program, folder, count = words[0], words[1], int(words[2])
        words_of_note = words[3 + count : 3 + count + len(NOTED)]
        variables = {name: value for name, value in zip(NOTED, words_of_note, strict=True) if value}
        calls.append(Call(program, tuple(words[3 : 3 + count]), Path(folder), variables))
        words = words[3 + count + len(NOTED) :]
    return tuple(calls)


def _last_line(errors: str, copy: Path, name: str) -> str:
    lines = [line for line in errors.splitlines() if line.strip()]
    return lines[-1].replace(str(copy), name)[:200] if lines else ""
