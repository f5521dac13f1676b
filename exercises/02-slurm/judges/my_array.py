"""Judges my_array.sbatch of 2.4: its requests as sbatch reads them, and the learning rate of each task."""

from __future__ import annotations

import requests_of_file as wanted

from gpucourse.judge import Part, Way
from gpucourse.judge.batch import Place, blame_comments, execute, read_options
from gpucourse.judge.verdict import Verdict
from gpucourse.outside.slurm_options import SlurmOptions

SCRIPT = "sweep.py"
ARGUMENTS = ("--sweep=learning_rate", "--values=0.5,0.25,0.125,0.0625", "--epochs=1")
RATES = (0.0005, 0.001, 0.002, 0.004)
THREE_TASKS = [
    {"A": array, "a": task, "N": "node1", "j": number, "J": number}
    for array, task, number in (("4711", "1", "4712"), ("4711", "2", "4713"), ("4811", "1", "4812"))
]

WAYS = {
    "below-command": Way(wanted.BELOW_COMMAND, ("#SBATCH --array", "rates=()\n#SBATCH --array")),
    "no-gpu": Way(wanted.NO_GPU, ("#SBATCH --gres=gpu:1\n", "")),
    "seconds": Way(wanted.SECONDS, ("--time=00:10:00", "--time=600")),
    "one-file": Way(
        "{name} is one file for all tasks of the array: each overwrites the output of the others. %A is the array's number, "
        "and %a is the task's",
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
        "all four tasks may run at the same time (--array={given}): they take every free GPU, and other users wait. %2 after "
        "the range lets two run at a time",
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
            'python -u work/sweep.py "$@" --values="${rates[$SLURM_ARRAY_TASK_ID]}"',
            'for rate in "${rates[@]}"; do python -u work/sweep.py "$@" --values="$rate"; done',
        ),
    ),
}


def judge(part: Part) -> None:
    """Judge the requests, then the learning rate of each of the four tasks."""
    options = read_options(part)
    with blame_comments(options):
        wanted.check(part, options, machines=1, processes=1)
        _check_array(part, options)
        wanted.check_output(part, options, THREE_TASKS, "logs/4711_1-node1.out")
    _check_values(part)
    trial = Place(array_task=0, arguments=ARGUMENTS, files=(SCRIPT,), ends_with=3)
    if execute(part, trial).code == 0:
        raise Verdict(
            "failed",
            "hides-failure",
            "in a trial the command failed, but your file ended with code 0: the dependent job (afterok) would start anyway",
        )
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
        raise Verdict("failed", "limit", f"--array={option} lets {at_once} tasks run at the same time; expected 2 (%2)")


def _check_values(part: Part) -> None:
    values: list[str] = []
    for task in range(len(RATES)):
        case = f"task {task}"
        job = execute(part, Place(array_task=task, arguments=ARGUMENTS, files=(SCRIPT,)), case=case)
        calls = wanted.check_calls(part, job, SCRIPT)
        if len(calls) == len(RATES):
            raise part.wrong("all-in-each", case)
        if len(calls) > 1:
            raise wanted.too_often(SCRIPT, len(calls))
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
