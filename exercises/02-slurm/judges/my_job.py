"""Judges my_job.sbatch of 2.1: its requests as sbatch reads them, and its body as bash executes it."""

from __future__ import annotations

import requests_of_file as wanted

from gpucourse.judge import Part, Way
from gpucourse.judge.batch import Place, blame_comments, execute, read_options

SCRIPT = "first_job.py"
ARGUMENTS = ("--seconds=0.25", "--size=96")

WAYS = {
    "below-command": Way(wanted.BELOW_COMMAND, ("#SBATCH --time=00:10:00", "echo begin\n#SBATCH --time=00:10:00")),
    "no-gpu": Way(wanted.NO_GPU, ("#SBATCH --gres=gpu:1\n", "")),
    "seconds": Way(wanted.SECONDS, ("--time=00:10:00", "--time=600")),
    "one-file": Way(
        "five jobs would write to one file, {name}. A name without the job's number (%j) is the same for every job, so each "
        "job overwrites the output of the previous one",
        ("logs/%j-%N.out", "logs/job.out"),
    ),
    "no-arguments": Way(
        "the arguments of your file do not all reach first_job.py. What is typed after the file's name (sbatch FILE "
        '--seconds=3) arrives as $1, $2 and so on; "$@" passes all of them on',
        (' "$@"', ""),
    ),
    "in-the-background": Way(
        "the command is started in the background (&), so the file continues. In a trial it ended with code 0 although the "
        "command failed. A job ends with its file, and Slurm then ends whatever still runs in it: leave out the &",
        ('"$@"', '"$@" &'),
    ),
    "hides-failure": Way(
        "in a trial the command failed with code 3, but your file ended with code 0. A job's exit code is that of the file's "
        "last command, so Slurm would call it COMPLETED, and a job that waits for it (afterok) would start",
        ('"$@"', '"$@"\necho done'),
    ),
}


def judge(part: Part) -> None:
    """Judge the requests, the command, and the file's exit code if the command fails."""
    options = read_options(part)
    with blame_comments(options):
        wanted.check(part, options, machines=1, processes=1)
        wanted.check_output(part, options, wanted.TWO_JOBS, "logs/4711-node1.out")
    job = execute(part, Place(arguments=ARGUMENTS, files=(SCRIPT,)))
    (call, *more) = wanted.check_calls(part, job, SCRIPT)
    if more:
        raise wanted.too_often(SCRIPT, 1 + len(more))
    if not all(call.value(name) for name in ("--seconds", "--size")):
        raise part.wrong("no-arguments")
    trial = execute(part, Place(arguments=ARGUMENTS, files=(SCRIPT,), ends_with=3))
    if trial.code == 0:
        raise part.wrong("in-the-background" if trial.background else "hides-failure")
    part.note(f"sbatch would accept it: {', '.join(f'--{name}={value}' for name, value in options.values.items())}")
