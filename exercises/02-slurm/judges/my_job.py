"""Judge my_job.sbatch of 2.1: its requests as sbatch reads them, its body as bash executes it, and the job that follows."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

import requests_of_file as file_requests

from gpucourse.judge import Part, Way
from gpucourse.judge.batch import NOTE, Call, Execution, Place, blame_comments, execute, read_options
from gpucourse.judge.verdict import Verdict
from gpucourse.outside.slurm_options import OptionRefused, SlurmOptions, read_words

SCRIPT, NEXT = "first_job.py", "next_job.py"
ARGUMENTS = ("--seconds=0.25", "--size=96")
PRODUCT_MS = (4.25, 3300.5, 905.75)
START_S, MARGIN_S, NEXT_JOB = 60, 300, "4800"
_NOTE_CALL = NOTE.partition("\n")[2]
PROGRAMS = {  # only first_job.py fails in a trial
    "sbatch": f"#!/bin/bash\nENDS_WITH=0\n[[ $* == *--parsable* ]] && echo {NEXT_JOB} || echo Submitted batch job {NEXT_JOB}\n"
    + _NOTE_CALL,
    **dict.fromkeys(
        ("python", "python3"),
        f'#!/bin/bash\n[[ $* == *_job.py* ]] || exec {shlex.quote(sys.executable)} "$@"\n'
        f"[[ $* == *{SCRIPT}* ]] || ENDS_WITH=0\n" + _NOTE_CALL,
    ),
}

WAYS = {
    "below-command": Way(file_requests.BELOW_COMMAND, ("#SBATCH --time=00:10:00", "echo begin\n#SBATCH --time=00:10:00")),
    "no-gpu": Way(file_requests.NO_GPU, ("#SBATCH --gres=gpu:1\n", "")),
    "seconds": Way(file_requests.SECONDS, ("--time=00:10:00", "--time=600")),
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
        ('"$@" || exit', '"$@" &'),
    ),
    "hides-failure": Way(
        "in a trial the command failed with code 3, but your file ended with code 0. A job's exit code is that of the file's "
        "last command, so Slurm would call it COMPLETED, and a job that waits for it (afterok) would start",
        (" || exit\nminutes", "\nminutes"),
    ),
    "no-dependency": Way(
        "the next job does not wait for this one: it would start as soon as a GPU is free, even if your job fails. "
        "--dependency=afterok:NUMBER makes it wait",
        ('--dependency="afterok:$SLURM_JOB_ID" ', ""),
    ),
    "after-any": Way(
        "{given} lets the next job start even if yours fails. afterok waits until your job has ended with code 0",
        ("afterok:", "afterany:"),
    ),
    "too-short": Way(
        "the next job would be killed: its time limit is {limit:.0f} s, but 1,000 products take {work:.0f} s here, and "
        "starting takes up to a minute",
        ("($1 * 1000 / 1000 + 60) / 60) + 1", "$1 * 1000 / 1000 / 60)"),
    ),
    "too-long": Way(
        "the next job asks for {limit:.0f} s, but needs only {need:.0f} s here: a job that asks for too much does not fit into "
        "gaps, and waits longer. Compute the limit from the measured time of a product",
        ('--time="$minutes"', '--time="$((minutes + 10))"'),
    ),
    "next-in-seconds": Way(
        "--time={given} of the next job asks for {given} minutes. A single number counts minutes, and {need:.0f} seconds are "
        "needed here",
        ("+ 60) / 60) + 1", "+ 60)) + 1"),
    ),
    "next-without-gpu": Way(
        "the next job asks for no GPU: it does not inherit the requests of this job",
        ("--partition=gpu --gres=gpu:1 \\", "--partition=gpu \\"),
    ),
    "next-number": Way(
        "next_job.py received {given}, but the number of the next job is {number}: sbatch --parsable prints the number alone",
        ("sbatch --parsable ", "sbatch "),
    ),
}


def judge(part: Part) -> None:
    """Judge the requests, the command, the file's exit code if the command fails, and the next job for several GPUs."""
    options = read_options(part)
    with blame_comments(options):
        file_requests.check(part, options, machines=1, processes=1)
        file_requests.check_output(part, options, file_requests.TWO_JOBS, "logs/4711-node1.out")
    for product_ms in PRODUCT_MS:
        case = f"a product takes {product_ms} ms"
        job = execute(part, _make_place(product_ms), case=case)
        (call, *more) = file_requests.check_calls(part, job, SCRIPT)
        if more:
            raise file_requests.refuse_repeated_call(SCRIPT, 1 + len(more))
        if not all(call.value(name) for name in ("--seconds", "--size")):
            raise part.wrong("no-arguments")
        trial = execute(part, _make_place(product_ms, ends_with=3))
        if trial.code == 0:
            raise part.wrong("in-the-background" if trial.background else "hides-failure")
        _check_next(part, job, product_ms, case)
    part.note(f"sbatch would accept it: {', '.join(f'--{name}={value}' for name, value in options.values.items())}")


def _make_place(product_ms: float, ends_with: int = 0) -> Place:
    return Place(
        arguments=ARGUMENTS,
        files=(SCRIPT, NEXT),
        ends_with=ends_with,
        programs=PROGRAMS,
        texts={"outputs/product-ms-4711.txt": f"{product_ms:.6f}\n"},
    )


def _check_next(part: Part, job: Execution, product_ms: float, case: str) -> None:
    """Check the job that the file submits. Raises Verdict."""
    submissions = job.find_calls("sbatch")
    if len(submissions) != 1:
        raise Verdict("failed", "no-next", f"your file submits {len(submissions)} jobs with sbatch; expected one", case)
    try:
        options = read_words(submissions[0].words, "sbatch")
        limit_s = options.seconds
    except OptionRefused as error:
        raise Verdict("failed", "refused", f"sbatch refuses the next job: {error}", case) from None
    _check_dependency(part, options, case)
    _check_limit(part, options, limit_s, product_ms, case)
    if options.gpus == 0:
        raise part.wrong("next-without-gpu", case)
    if not options.values.get("partition"):
        raise Verdict("failed", "next-partition", "the next job names no partition: it would wait in the default queue", case)
    words = options.values.get("wrap", "")
    lacks = [word for word in (SCRIPT, "setup.sh", "--products", "1000", *ARGUMENTS) if word not in words]
    if lacks:
        raise Verdict("failed", "next-command", f"--wrap of the next job lacks {lacks[0]}: {words or 'it is empty'}", case)
    _check_number(part, job.list_runs_of(NEXT), case)


def _check_dependency(part: Part, options: SlurmOptions, case: str) -> None:
    dependency = options.values.get("dependency", "")
    if not dependency:
        raise part.wrong("no-dependency", case)
    if dependency.startswith(("afterany:", "after:")):
        raise part.wrong("after-any", case, given=dependency)
    if dependency != "afterok:4711":
        raise Verdict("failed", "dependency", f"--dependency={dependency}; expected afterok:4711, which is this job here", case)


def _check_limit(part: Part, options: SlurmOptions, limit_s: int | None, product_ms: float, case: str) -> None:
    if limit_s is None:
        raise Verdict("failed", "next-no-time", "the next job has no time limit (--time)", case)
    limit = options.values["time"]
    need_s = product_ms + START_S  # 1,000 products, each of product_ms
    if limit.isdigit() and need_s <= int(limit) <= need_s + MARGIN_S:
        raise part.wrong("next-in-seconds", case, given=limit, need=need_s)
    if limit_s < need_s:
        raise part.wrong("too-short", case, limit=limit_s, work=product_ms)
    if limit_s > need_s + MARGIN_S:
        raise part.wrong("too-long", case, limit=limit_s, need=need_s)


def _check_number(part: Part, calls: Sequence[Call], case: str) -> None:
    if len(calls) != 1:
        raise Verdict("failed", "no-note", f"your file runs work/{NEXT} {len(calls)} times; expected once", case)
    words = calls[0].words[calls[0].words.index(next(word for word in calls[0].words if word.endswith(NEXT))) + 1 :]
    if words != (NEXT_JOB,):
        raise part.wrong("next-number", case, given=" ".join(words) or "nothing", number=NEXT_JOB)
