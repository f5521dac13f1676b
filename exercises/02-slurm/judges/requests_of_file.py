"""Check the requests of the three batch files, and their call of the course's script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpucourse.judge import Part
from gpucourse.judge.batch import Call, Execution
from gpucourse.judge.verdict import Verdict
from gpucourse.outside.slurm_options import SlurmOptions, expand

BELOW_COMMAND = (
    "line {number}, '{line}', is below the first command. sbatch stops reading requests there and treats it as a comment, "
    "without a warning: move it above all commands"
)
NO_GPU = (
    "your file asks for no GPU, so Slurm gives it none: the job may start sooner, but its CUDA_VISIBLE_DEVICES is empty. "
    "--gres=gpu:1 asks for one GPU on each machine"
)
SECONDS = (
    "--time={given} asks for {minutes:g} minutes. A single number counts minutes; 10:00 is minutes and seconds; 00:10:00 is "
    "hours, minutes and seconds. It has to be ten minutes"
)
MIN_S, MAX_S = 300, 600
PARTITION = "gpu"
TWO_JOBS = [dict.fromkeys("jJA", number) | {"N": "node1"} for number in ("4711", "4712")]


def check(part: Part, options: SlurmOptions, *, machines: int, processes: int) -> None:
    """Check the partition, the GPUs, the time limit, and the numbers of machines and processes. Raises Verdict."""
    if not options.values.get("partition"):
        raise _name_missing("partition", "no partition", "the job would wait in the cluster's default queue, whatever that is")
    check_partition(options)
    if options.nodes != machines or options.tasks != processes:
        raise Verdict(
            "failed",
            "layout",
            f"your file asks for {count(options.nodes, 'machine')} and {count(options.tasks, 'process')} in all; expected "
            f"{count(machines, 'machine')} and {count(processes, 'process')} (--nodes, --ntasks-per-node)",
        )
    if options.gpus == 0:
        raise part.wrong("no-gpu")
    if options.gpus != 1:
        raise Verdict("failed", "gpus", f"your file asks for {options.gpus} GPUs on each machine; expected 1")
    seconds = options.seconds
    if seconds is None:
        raise _name_missing("time", "no time limit", "the job may hold its GPU until the partition's own limit")
    if not MIN_S <= seconds <= MAX_S:
        raise part.wrong("seconds", given=options.values["time"], minutes=seconds / 60)


def check_partition(options: SlurmOptions) -> None:
    """Check that the partition is gpu. Raises Verdict."""
    if (name := options.values["partition"]) != PARTITION:
        raise Verdict("failed", "partition", f"--partition={name} is a different queue: expected {PARTITION}")


def check_output(part: Part, options: SlurmOptions, jobs: Sequence[Mapping[str, str]], name: str) -> None:
    """Check where the output goes. Raises Verdict.

    `jobs`: several jobs or tasks, each with the values of the placeholders in --output.
    `name`: the file that the first job should write.
    """
    pattern = options.values.get("output")
    if pattern is None:
        raise _name_missing(
            "output", "no --output", "the output would go to slurm-NUMBER.out in the run's folder, not into logs/"
        )
    files = [expand(pattern, job).removeprefix("./") for job in jobs]
    if len(set(files)) < len(files):
        raise part.wrong("one-file", name=pattern)
    if files[0] != name:
        raise Verdict("failed", "output", f"--output={pattern} makes {files[0]} of job 4711 on node1; expected {name}")


def check_calls(part: Part, job: Execution, script: str) -> list[Call]:
    """Return the calls of the course's script, at least one. Raises Verdict if the shell failed or did not run the script."""
    calls = job.list_runs_of(script)
    if not calls and job.code:
        raise Verdict(
            "failed",
            "shell",
            f"{part.file.name} ended with code {job.code} before it ran {script}: {job.errors or 'no message'}",
        )
    if not calls:
        attempts = [word for call in job.calls for word in call.words if word.endswith(script)]
        from_here = f"; it looked for {attempts[0]}, which does not exist" if attempts else ""
        raise Verdict(
            "failed", "no-script", f"your file never runs work/{script}{from_here}. The job starts in the folder of the run"
        )
    if job.code:
        raise Verdict("failed", "shell", f"{part.file.name} ended with code {job.code}: {job.errors or 'no message'}")
    if any("GPUCOURSE_OUT" not in call.variables for call in calls):
        complaint = (
            f"{script} runs without what setup.sh sets, such as $GPUCOURSE_OUT: keep the line source ./setup.sh above it"
        )
        raise Verdict("failed", "no-setup", complaint)
    return calls


def refuse_repeated_call(script: str, times: int) -> Verdict:
    """Return the verdict on a file that runs the script more than once."""
    return Verdict("failed", "too-often", f"your file runs {script} {times} times in one job; expected once")


def _name_missing(name: str, lack: str, consequence: str) -> Verdict:
    return Verdict("failed", f"no-{name}", f"your file has {lack} (#SBATCH --{name}=...): {consequence}")


def count(number: int, word: str) -> str:
    """Return the number with its word, such as `1 process` or `2 processes`."""
    return f"{number} {word}{'' if number == 1 else 'es' if word.endswith('s') else 's'}"
