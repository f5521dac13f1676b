"""Judge my_array.sbatch of 2.4: its requests as sbatch reads them, the rate of each task, and the job that compares."""

from __future__ import annotations

import shlex
import sys

import requests_of_file as file_requests

from gpucourse.judge import Part, Way
from gpucourse.judge.batch import NOTE, Call, Execution, Place, blame_comments, execute, read_options
from gpucourse.judge.verdict import Verdict
from gpucourse.outside.slurm_options import OptionRefused, SlurmOptions, read_words

SCRIPT, GATHER, RECORDER = "sweep.py", "gather.py", "gather_job.py"
FILES = (SCRIPT, GATHER, RECORDER)
ARRAY, GATHER_JOB, LIMIT_S = "4711", "4800", 300
ARGUMENTS = ("--sweep=learning_rate", "--values=0.5,0.25,0.125,0.0625", "--epochs=1")
RATES = (0.0005, 0.001, 0.002, 0.004)
THREE_TASKS = [
    {"A": array, "a": task, "N": "node1", "j": number, "J": number}
    for array, task, number in (("4711", "1", "4712"), ("4711", "2", "4713"), ("4811", "1", "4812"))
]
_NOTE_CALL = NOTE.partition("\n")[2]
PROGRAMS = {  # only sweep.py fails in a trial
    "sbatch": f"#!/bin/bash\nENDS_WITH=0\n[[ $* == *--parsable* ]] && echo {GATHER_JOB} || "
    f"echo Submitted batch job {GATHER_JOB}\n" + _NOTE_CALL,
    **dict.fromkeys(
        ("python", "python3"),
        f'#!/bin/bash\n[[ $* == *{SCRIPT}* || $* == *{RECORDER}* ]] || exec {shlex.quote(sys.executable)} "$@"\n'
        f"[[ $* == *{SCRIPT}* ]] || ENDS_WITH=0\n" + _NOTE_CALL,
    ),
}

WAYS = {
    "below-command": Way(file_requests.BELOW_COMMAND, ("#SBATCH --array", "rates=()\n#SBATCH --array")),
    "no-gpu": Way(file_requests.NO_GPU, ("#SBATCH --gres=gpu:1\n", "")),
    "seconds": Way(file_requests.SECONDS, ("--time=00:10:00", "--time=600")),
    "one-file": Way(
        "{name} is one file for all tasks of the array: each overwrites the output of the others. The name needs the "
        "numbers of the array and of the task",
        ("logs/%A_%a-%N.out", "logs/%A-%N.out"),
    ),
    "no-array": Way(
        "your file is one job, not an array: sbatch starts it once, SLURM_ARRAY_TASK_ID is not set, and only one of the four "
        "learning rates is tried",
        ("#SBATCH --array=0-3%2\n", ""),
    ),
    "one-too-many": Way(
        "--array={given} makes {count} tasks. Both ends belong to the range: 0-4 makes five tasks, but there is no learning "
        "rate for the fifth",
        ("--array=0-3%2", "--array=0-4%2"),
    ),
    "from-one": Way(
        "--array={given} counts from 1. Lists in bash are numbered from 0, and so is the table of the run: the "
        "tasks have to be 0 to 3",
        ("--array=0-3%2", "--array=1-4%2"),
    ),
    "no-limit": Way(
        "all four tasks may run at the same time (--array={given}): they take every free GPU, and other users wait. A "
        "number after the range limits the tasks that run at the same time (man sbatch, --array)",
        ("--array=0-3%2", "--array=0-3"),
    ),
    "index-as-value": Way(
        "task {task} would train with the learning rate {given}, the number of the task itself. SLURM_ARRAY_TASK_ID is an "
        "index into your list of values, not the value",
        ('"${rates[$SLURM_ARRAY_TASK_ID]}"', '"$SLURM_ARRAY_TASK_ID"'),
    ),
    "same-value": Way(
        "every task would train with the learning rate {given}: what your command passes does not depend on "
        "SLURM_ARRAY_TASK_ID, the number of the task",
        ("${rates[$SLURM_ARRAY_TASK_ID]}", "$rates"),
    ),
    "all-in-each": Way(
        "each task trains with all four rates, so the array does everything four times. All tasks run the same file, and "
        "each must pick one value by SLURM_ARRAY_TASK_ID",
        (
            'python -u work/sweep.py "$@" --values="${rates[$SLURM_ARRAY_TASK_ID]}" || exit',
            'for rate in "${rates[@]}"; do python -u work/sweep.py "$@" --values="$rate" || exit; done',
        ),
    ),
    "once-each": Way(
        "{count} of the four tasks submit the job that compares them. All tasks run the same file, so what should happen once "
        "must depend on SLURM_ARRAY_TASK_ID",
        ('"$SLURM_ARRAY_TASK_ID" = 0', '"$SLURM_ARRAY_TASK_ID" -ge 0'),
    ),
    "one-task-waited-for": Way(
        "the job that compares would wait for {given}, which is one task: SLURM_JOB_ID is the number of the task's own job. "
        "The other tasks may not have finished. Which variable has the number of the whole array?",
        ('"afterok:$SLURM_ARRAY_JOB_ID"', '"afterok:$SLURM_JOB_ID"'),
    ),
    "waits-for-nothing": Way(
        "the job that compares does not wait for the array: it would start immediately, and compare the tasks that "
        "happen to be done",
        ('--dependency="afterok:$SLURM_ARRAY_JOB_ID" ', ""),
    ),
    "also-after-failure": Way(
        "{given} lets the job that compares start even if a task fails: its table would lack a row, and the best value may be"
        " the missing one. afterok waits until all tasks have ended with code 0",
        ("afterok:", "afterany:"),
    ),
    "left-in-the-queue": Way(
        "if a task fails, the job that compares can never start, and stays in the queue for ever. --kill-on-invalid-dep=yes "
        "lets Slurm remove it",
        (" --kill-on-invalid-dep=yes", ""),
    ),
    "keeps-a-gpu": Way(
        "the job that compares asks for a GPU. It only reads files, and would wait for a GPU that others could use",
        ("--partition=gpu \\", "--partition=gpu --gres=gpu:1 \\"),
    ),
    "hides-failure": Way(
        "in a trial the command failed, but your file ended with code 0: the job that compares (afterok) would start anyway",
        ('[$SLURM_ARRAY_TASK_ID]}" || exit\nif [', '[$SLURM_ARRAY_TASK_ID]}"\nif ['),
    ),
}


def judge(part: Part) -> None:
    """Judge the requests, then the learning rate of each of the four tasks."""
    options = read_options(part)
    with blame_comments(options):
        file_requests.check(part, options, machines=1, processes=1)
        _check_array(part, options)
        file_requests.check_output(part, options, THREE_TASKS, "logs/4711_1-node1.out")
    _check_values(part)
    for task in range(len(RATES)):
        trial = execute(part, _make_place(task, ends_with=3))
        if trial.code == 0:
            raise part.wrong("hides-failure", f"task {task}")
        if trial.find_calls("sbatch"):
            says = "in a trial the command failed, but your file submits the job that compares"
            raise Verdict("failed", "after-failure", says, f"task {task}")
    _check_gathering(part)
    part.note(f"the tasks would train with {', '.join(map(str, RATES))}")


def _check_array(part: Part, options: SlurmOptions) -> None:
    tasks, at_once = options.array
    option = options.values.get("array", "")
    if not tasks:
        raise part.wrong("no-array")
    if tasks == (1, 2, 3, 4):
        raise part.wrong("from-one", given=option)
    if tasks == (0, 1, 2, 3, 4):
        raise part.wrong("one-too-many", given=option, count=len(tasks))
    if tasks != (0, 1, 2, 3):
        listed = ", ".join(map(str, tasks[:8]))
        raise Verdict("failed", "array", f"--array={option} makes the tasks {listed}; expected 0, 1, 2 and 3")
    if at_once == 0 or at_once >= len(tasks):
        raise part.wrong("no-limit", given=option)
    if at_once != 2:
        raise Verdict("failed", "limit", f"--array={option} lets {at_once} tasks run at the same time; expected 2")


def _check_values(part: Part) -> None:
    values: list[str] = []
    for task in range(len(RATES)):
        case = f"task {task}"
        job = execute(part, _make_place(task), case=case)
        calls = file_requests.check_calls(part, job, SCRIPT)
        if len(calls) == len(RATES):
            raise part.wrong("all-in-each", case)
        if len(calls) > 1:
            raise file_requests.refuse_repeated_call(SCRIPT, len(calls))
        if calls[0].value("--epochs") is None:
            raise Verdict("failed", "no-arguments", f'the arguments of your file ("$@") do not reach {SCRIPT}', case)
        values.append(calls[0].value("--values") or "")
    if values == [str(task) for task in range(len(RATES))]:
        raise part.wrong("index-as-value", task=3, given=values[3])
    if ARGUMENTS[1].partition("=")[2] in values:
        raise Verdict(
            "failed",
            "no-value",
            f'{SCRIPT} got the whole list from "$@"; put your own --values= after it',
            "task 0",
        )
    if len(set(values)) == 1:
        raise part.wrong("same-value", given=values[0] or "of nothing")
    for task, (answer, right) in enumerate(zip(values, RATES, strict=True)):
        if _number(answer) is None or abs(float(answer) - right) > 1e-9:
            raise Verdict("failed", "value", f"--values was {answer or 'empty'}; expected {right}", f"task {task}")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _make_place(task: int, ends_with: int = 0) -> Place:
    return Place(
        array_task=task,
        last_task=len(RATES) - 1,
        job=ARRAY,
        arguments=ARGUMENTS,
        files=FILES,
        ends_with=ends_with,
        programs=PROGRAMS,
    )


def _check_gathering(part: Part) -> None:
    """Check that exactly one task submits the job that compares the tasks, and check the options of that job.

    Raises Verdict.
    """
    jobs = [execute(part, _make_place(task), case=f"task {task}") for task in range(len(RATES))]
    submitting = [(task, job) for task, job in enumerate(jobs) if job.find_calls("sbatch")]
    if not submitting:
        raise Verdict("failed", "no-gathering", "no task submits the job that compares them (sbatch)")
    if len(submitting) > 1:
        raise part.wrong("once-each", count=len(submitting))
    task, job = submitting[0]
    calls = job.find_calls("sbatch")
    if len(calls) > 1:
        raise Verdict("failed", "gathered-twice", f"task {task} submits {len(calls)} jobs; expected one")
    try:
        options = read_words(calls[0].words, "sbatch")
        limit_s = options.seconds
    except OptionRefused as error:
        raise Verdict("failed", "refused", f"sbatch refuses the job that compares: {error}") from None
    _check_dependency(part, options, _make_place(task).task_job)
    if options.gpus:
        raise part.wrong("keeps-a-gpu")
    if limit_s != LIMIT_S:
        raise Verdict("failed", "gather-limit", f"the job that compares has a time limit of {limit_s} s; expected {LIMIT_S}")
    words = options.values.get("wrap", "")
    lacks = [word for word in (GATHER, "setup.sh", "--print-only", *ARGUMENTS) if word not in words]
    if lacks:
        raise Verdict("failed", "gather-command", f"--wrap of the job lacks {lacks[0]}: {words or 'it is empty'}")
    _check_number(job)


def _check_dependency(part: Part, options: SlurmOptions, own_job: str) -> None:
    dependency = options.values.get("dependency", "")
    if not dependency:
        raise part.wrong("waits-for-nothing")
    if dependency.startswith(("afterany:", "after:")):
        raise part.wrong("also-after-failure", given=dependency)
    if dependency in {f"afterok:{own_job}", *(f"afterok:{ARRAY}_{task}" for task in range(len(RATES)))}:
        raise part.wrong("one-task-waited-for", given=dependency)
    if dependency not in {f"afterok:{ARRAY}", f"afterok:{ARRAY}_*"}:
        raise Verdict("failed", "dependency", f"--dependency={dependency}; expected afterok:{ARRAY}, which is the array here")
    if options.values.get("kill-on-invalid-dep") != "yes":
        raise part.wrong("left-in-the-queue")


def _check_number(job: Execution) -> None:
    calls: list[Call] = job.list_runs_of(RECORDER)
    if len(calls) != 1:
        raise Verdict("failed", "no-note", f"your file runs work/{RECORDER} {len(calls)} times; expected once")
    words = calls[0].words[calls[0].words.index(next(word for word in calls[0].words if word.endswith(RECORDER))) + 1 :]
    if words != (GATHER_JOB,):
        numbers = " ".join(words) or "nothing"
        raise Verdict("failed", "gather-number", f"{RECORDER} received {numbers}; the number of the job is {GATHER_JOB}")
