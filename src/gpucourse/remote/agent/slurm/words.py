"""The meaning of Slurm's words, in one table, and the parsing of its answers. Every function is pure, and is tested against
recorded answers.

A word that is not in the table stays as it is. Its phase is `unknown`, and Slurm is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Dict

Row = Dict[str, Any]
"""A row of the record: one job, or one task of an array."""

WAITING, RUNNING, ENDED, UNKNOWN = "waiting", "running", "ended", "unknown"

# Slurm's word for a job's state -> the phase, and for an ended job the reason in its record.
STATES = {
    "PENDING": (WAITING, ""),
    "CONFIGURING": (WAITING, ""),  # its nodes are being booted
    "REQUEUED": (WAITING, ""),
    "REQUEUE_FED": (WAITING, ""),
    "REQUEUE_HOLD": (WAITING, ""),
    "RESV_DEL_HOLD": (WAITING, ""),
    "SPECIAL_EXIT": (WAITING, ""),  # requeued and held, because its exit code is a special one
    "POWER_UP_NODE": (WAITING, ""),  # documented since 24.05
    "RUNNING": (RUNNING, ""),
    "COMPLETING": (RUNNING, ""),  # its processes are being ended
    "RESIZING": (RUNNING, ""),
    "SIGNALING": (RUNNING, ""),
    "STAGE_OUT": (RUNNING, ""),
    "STOPPED": (RUNNING, ""),
    "SUSPENDED": (RUNNING, ""),
    "UPDATE_DB": (RUNNING, ""),  # documented since 24.05
    "EXPEDITING": (WAITING, ""),  # documented since 25.05
    "COMPLETED": (ENDED, "exited"),
    "FAILED": (ENDED, "exited"),
    "OUT_OF_MEMORY": (ENDED, "exited"),
    "TIMEOUT": (ENDED, "timed_out"),
    "DEADLINE": (ENDED, "timed_out"),
    "CANCELLED": (ENDED, "cancelled"),
    "PREEMPTED": (ENDED, "cancelled"),
    "REVOKED": (ENDED, "cancelled"),  # another cluster of a federation took it
    "NODE_FAIL": (ENDED, "lost"),
    "BOOT_FAIL": (ENDED, "lost"),
    "LAUNCH_FAILED": (ENDED, "lost"),  # documented since 23.11
    "RECONFIG_FAIL": (ENDED, "lost"),
    "FORGOTTEN": (ENDED, "lost"),  # ours: Slurm has forgotten it, and it left no note
}

AT_WORK = ("idle", "mixed", "allocated", "completing", "planned")
"""The states of a healthy node. It may be running jobs, for example when a lab is deployed again."""
NODE_FLAGS = "-+$^@#%!~"
"""The flags that sinfo adds at the end of a state (24.11: `mixed-`, planned for a job), except `*`, which means that the node
does not answer."""

FAILED_START = "launch failed requeued held"
SIGNALLED = "a signal ended it"
"""Our own reason for a job whose note says that a signal ended it. Slurm has forgotten whether this was the time limit or
scancel."""

# The reason why a job waits, in plain words. A reason that is not here is shown as it is.
REASONS = {
    "Resources": "it is next in line, but not enough nodes or GPUs are free",
    "Priority": "other jobs are ahead of it",
    "Dependency": "the job that it depends on has not ended",
    "DependencyNeverSatisfied": "the job that it depends on failed, so it will never start",
    "JobArrayTaskLimit": "its array has reached the limit on tasks that run at the same time",
    "BeginTime": "its start time has not come yet",
    "JobHeldUser": "a user holds it",
    "JobHeldAdmin": "the administrator holds it",
    FAILED_START: "it could not be started, so Slurm holds it",
    "job requeued in held state": "it failed at its start, so Slurm holds it",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionTimeLimit": "it asks for more time than its partition allows",
    "PartitionNodeLimit": "it asks for more nodes than its partition allows",
    "NodeDown": "a node that it needs is down",
    "ReqNodeNotAvail": "a node that it needs is down, drained or reserved",
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": (
        "nodes that it needs are down or drained"
    ),
    "InvalidAccount": "Slurm accounting does not know its account",
    "InvalidQOS": "Slurm accounting does not know its QoS",
    "AccountNotAllowed": "its partition does not admit its account",
    "QOSNotAllowed": "its partition does not admit its QoS",
    "PartitionConfig": "its partition does not allow what it asks for",
    "BadConstraints": "no node can ever have what it asks for",
    "Licenses": "all licenses that it asks for are in use",
    "Reservation": "its reservation has not begun",
    "ReservationDeleted": "its reservation no longer exists",
    "Prolog": "its node is being prepared",
    "JobLaunchFailure": "it could not be started on its node",
    "Cleaning": "its earlier start is being cleaned up",
}
_LIMITS = (
    (r"(Assoc|QOS)Grp\w*Minutes\w*|\w*UsageThreshold", "the computing time of its {} is used up"),
    (r"(Assoc|QOS)(Max|Grp)Wall\w*", "it asks for more time than its {} allows"),
    (r"(Assoc|QOS)Max(Jobs|SubmitJob)\w*", "your jobs have reached the limit of its {}"),
    (r"(Assoc|QOS)Max\w*PerJob\w*", "it asks for more than its {} allows for one job"),
    (r"(Assoc|QOS)Max\w*PerNode\w*", "it asks for more on one node than its {} allows"),
    (r"QOSMin\w*", "it asks for less than its {} requires"),
    (r"(Assoc|QOS)?(Max|Grp)\w+", "you or your group have reached a limit of its {}"),
)
"""Patterns of the reasons that name a limit of accounting, with their meaning. The account or the QoS replaces `{}`."""

_NEVER = re.compile(
    r"DependencyNeverSatisfied|PartitionTimeLimit|PartitionNodeLimit|PartitionConfig|InvalidAccount|InvalidQOS|AccountNotAllowed"
    r"|QOSNotAllowed|BadConstraints|ReservationDeleted|(Assoc|QOS)(Max|Grp)Wall\w*|(Assoc|QOS)Max\w*Per(Job|Node)\w*|QOSMin\w*"
    r"|(Assoc|QOS)Grp\w*Minutes\w*"
)
"""The reasons why a job does not start, however long it waits, unless the job or a limit is changed."""

HELD = ("JobHeldUser", "JobHeldAdmin", FAILED_START, "job requeued in held state")

UNKNOWN_JOB = "Invalid job id"
QUEUE = "%i|%T|%r|%N|%V|%S|%e"
"""The format for squeue -o. It is the same in every version, unlike the output of --json."""

USAGE = "JobID,State,ElapsedRaw,AllocTRES"
ACCOUNTS = "JobID,State,ExitCode,Submit,Start,End,NodeList"
NODES = "%N|%P|%T|%G|%c|%a|%E"
GROUPS = "%l|%D|" + NODES

MAX_RANGE = 10_000
"""The maximum length of one range that is read. A longer range may come from a script, which can print any line, or from a
hostile node."""

_TASK_FAILED = re.compile(
    r"^srun: error: (?P<node>[^:\s]+): tasks? (?P<tasks>[0-9,\-]+): (?P<how>Exited with exit code (?P<code>\d+)|[A-Z][a-z ]+)"
)
_SIGNALS = {"Killed": 9, "Terminated": 15, "Aborted": 6, "Segmentation fault": 11, "Interrupt": 2, "Hangup": 1, "Bus error": 7}


def phase(state: str) -> str:
    """Return `waiting`, `running` or `ended`, or `unknown` for a word that is not in the table."""
    return STATES.get(state, (UNKNOWN, ""))[0]


def ending(state: str) -> str:
    """Return how an ended job ended: exited, timed_out, cancelled or lost."""
    return STATES.get(state, (UNKNOWN, ""))[1] or "lost"


def is_over(row: Row) -> bool:
    """Return whether a job has ended."""
    return phase(row["state"]) == ENDED


def explain_reason(reason: str) -> str:
    """Return a reason for waiting in plain words, or an empty string if it is not in the table."""
    meaning = REASONS.get(reason) or next((words for name, words in REASONS.items() if re.match(name + r"[,(]", reason)), "")
    limits = (words for pattern, words in _LIMITS if re.match(pattern + "$", reason))
    return meaning or next(limits, "").format("QoS" if "QOS" in reason else "account")


def never_starts(reason: str) -> bool:
    """Return whether a job that waits for this reason will never start."""
    return bool(re.match(f"(?:{_NEVER.pattern})$", reason))


def queue(text: str) -> dict[str, Row]:
    """Parse the output of squeue with the format QUEUE. Return a row for each job, by its number (`12`, or `7_3` for a
    task)."""
    jobs: dict[str, Row] = {}
    for row in _read_table(text, ("job", "state", "reason", "node", "submitted", "started", "ended")):
        job, job_phase = row.pop("job"), phase(row["state"])
        if job_phase == WAITING:
            row.update(expected=row["started"], started="")
        else:
            row.update(reason="", expected="")
        jobs[job] = row if job_phase == ENDED else {**row, "ended": ""}  # `ended` was the end of its time limit
    return jobs


def details(text: str) -> dict[str, Row]:
    """Return a row for each job, by its number, from the output of `scontrol show job -o`.

    It has one line for each job or task of an array.

    The array's own line describes its waiting tasks.
    """
    jobs: dict[str, Row] = {}
    for line in text.splitlines():
        fields = dict(re.findall(r"(?:^| )([A-Za-z]+)=(\S*)", line))
        if "JobState" not in fields:
            continue
        array, task = fields.get("ArrayJobId"), fields.get("ArrayTaskId", "")
        job = f"{array}_{task}" if array and task.isdigit() else fields.get("JobId", "")
        restarts = fields.get("Restarts", "")
        jobs[job] = {
            "state": fields["JobState"],
            "code": code(fields.get("ExitCode", "")),
            "restarts": int(restarts) if restarts.isdigit() else 0,
            "reason": _clean(fields.get("Reason", "")),
            "tres": fields.get("AllocTRES", fields.get("TRES", "")),
            "submitted": _clean(fields.get("SubmitTime", "")),
            "started": _clean(fields.get("StartTime", "")),
            "ended": _clean(fields.get("EndTime", "")),
        }
    return jobs


def accounts(text: str) -> dict[str, Row]:
    """Return a row for each job, by its number, from the output of `sacct -n -P -X -o ACCOUNTS`.

    `CANCELLED by 1000` becomes CANCELLED.
    """
    jobs: dict[str, Row] = {}
    for row in _read_table(text, ("job", "state", "code", "submitted", "started", "ended", "node")):
        if row["state"]:
            node = "" if row["node"].startswith("None") else row["node"]
            state = row["state"].split()[0].rstrip("+")
            jobs[row.pop("job")] = {**row, "state": state, "code": code(row["code"]), "node": node}
    return jobs


def usage(text: str) -> dict[str, Row]:
    """Parse the output of `sacct -n -P -X -D -o USAGE`, with a line for each start of each job.

    Return the core hours and the GPU hours of each job that has ended, and the id of the user who cancelled it, if one did.
    """
    jobs: dict[str, Row] = {}
    for row in _read_table(text, ("job", "state", "elapsed", "tres")):
        state, _, canceller = row["state"].partition(" by ")
        used = count_hours(row["tres"], float(row["elapsed"] or 0) if row["elapsed"].isdigit() else 0.0)
        total = jobs.setdefault(row["job"], {"cpu_hours": 0.0, "gpu_hours": 0.0, "cancelled_by": "", "has_ended": False})
        for name, hours in used.items():
            total[name] += hours
        total.update(cancelled_by=canceller, has_ended=phase(state.split("+")[0]) == ENDED)
    return {job: row for job, row in jobs.items() if row.pop("has_ended")}


def count_hours(tres: str, seconds: float) -> Row:
    """Return the core hours and the GPU hours of a job that held these resources (`cpu=4,gres/gpu=1`) for `seconds`."""
    counts = {name: int(count) for name, count in re.findall(r"(?:^|,)(cpu|gres/gpu)=(\d+)", tres)}
    return {"cpu_hours": counts.get("cpu", 0) * seconds / 3600, "gpu_hours": counts.get("gres/gpu", 0) * seconds / 3600}


def nodes(text: str) -> list[Row]:
    """Return a row for each node of each partition, from the output of `sinfo -h -a -N -o NODES`. The name of a default
    partition ends with a star."""
    return [
        {
            "name": row["name"],
            "partition": row["partition"].rstrip("*"),
            "default": row["partition"].endswith("*"),
            "state": row["state"],
            "gpus": gpus(row["gres"]),
            "cores": int(row["cores"]) if row["cores"].isdigit() else 1,
            "open": row["up"] == "up",
            "reason": row["reason"],
        }
        for row in _read_table(text, ("name", "partition", "state", "gres", "cores", "up", "reason"), last_may_have_bars=True)
    ]


def groups(text: str) -> list[Row]:
    """Return a row for each group of identical nodes of each partition, from the output of `sinfo -h -a -e -o GROUPS`: the
    fields of a node, the number of nodes, their GPU types, and the time limit in seconds."""
    rows: list[Row] = []
    for line in text.splitlines():
        limit, _, remainder = line.partition("|")
        count, _, node = remainder.partition("|")
        for row in nodes(node):
            types = gpu_types(node.split("|")[3])
            rows.append(dict(row, max_s=seconds(limit), count=int(count) if count.isdigit() else 1, gpu_types=types))
    return rows


def _read_table(text: str, names: Sequence[str], *, last_may_have_bars: bool = False) -> Iterator[Row]:
    """Yield the fields of each line by their names. Lines with a different number of fields are left out."""
    for line in text.splitlines():
        fields = line.split("|", len(names) - 1 if last_may_have_bars else -1)
        if len(fields) == len(names):
            yield dict(zip(names, map(_clean, fields)))


def usable(state: str) -> bool:
    """Return whether a node in this state of sinfo accepts jobs, now or once its current jobs have ended.

    A `*` means that the node does not answer.
    """
    # A node is `unknown` for some seconds after the controller has started.
    return not state.endswith("*") and state.rstrip(NODE_FLAGS) in (*AT_WORK, "reserved", "unknown")


def gpus(gres: str) -> int:
    """Return the number of GPUs in a text such as `gpu:1`, `gpu:a100:4(S:0-1)` or `gpu:t4:2,tmpdisk:100`."""
    total = 0
    for part in re.sub(r"\([^)]*\)", "", gres).split(","):
        words = part.split(":")
        if words[0] == "gpu":
            total += int(words[-1]) if words[-1].isdigit() else 1
    return total


def gpu_types(gres: str) -> list[str]:
    """Return the types of GPU in a text such as `gpu:a100:4(S:0-1)`. GPUs may have no type."""
    parts = [part.split(":") for part in re.sub(r"\([^)]*\)", "", gres).split(",")]
    return [words[1] for words in parts if words[0] == "gpu" and len(words) > 1 and not words[1].isdigit()]


def seconds(limit: str) -> int | None:
    """Return a time limit as sinfo writes it (`5:00`, `1-00:00:00`) in seconds, or None if there is no limit."""
    match = re.match(r"(?:(\d{1,5})-)?(?:(\d{1,5}):)?(\d{1,7}):(\d{1,2})$", limit)
    if not match:
        return None
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def count_held_gpus(text: str) -> int:
    """Return the number of GPUs that a job holds on all its nodes, from the output of `scontrol -d show job -o`."""
    return sum(int(count) for count in re.findall(r" GRES=gpu(?::[A-Za-z][^:\s(]*)?:(\d+)", text))


def code(text: str) -> int | None:
    """Return the shell's exit code for Slurm's `code:signal`, or None if the text contains none."""
    first, _, signal = text.partition(":")
    if not first.isdigit():
        return None
    number = signal.partition(":")[0]
    return 128 + int(number) if number.isdigit() and int(number) else int(first)


def parse_failed_tasks(text: str) -> list[tuple[int, int, str]]:
    """Return the processes that failed according to srun, in the order of its messages, as (number, exit code, node)."""
    failures: list[tuple[int, int, str]] = []
    for line in text.splitlines():
        failure = _TASK_FAILED.match(line)
        if failure:
            signal = next((number for words, number in _SIGNALS.items() if failure["how"].startswith(words)), 9)
            number = int(failure["code"]) if failure["code"] else 128 + signal
            failures += [(int(task), number, failure["node"]) for task in _expand(failure["tasks"])]
    return failures


def hosts(spelled: str) -> list[str]:
    """Return the nodes in a list in Slurm's notation, such as `head,node[01-03,7]`."""
    names: list[str] = []
    for name, numbers in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?", spelled):
        names += [name + number for number in _expand(numbers)] if numbers else [name]
    return names


def _expand(spelled: str) -> list[str]:
    """Return the numbers in a list such as `01-03,7`, with their leading zeros."""
    numbers: list[str] = []
    for part in spelled.split(","):
        low, _, high = part.partition("-")
        if low.isdigit() and (high or low).isdigit():
            last = min(int(high or low), int(low) + MAX_RANGE)
            numbers += [str(number).zfill(len(low)) for number in range(int(low), last + 1)]
    return numbers


def _clean(text: str) -> str:
    """Return a field of an answer, or an empty string if the field says that there is no value."""
    text = text.strip()
    return "" if text in ("N/A", "Unknown", "None", "NONE", "none", "(null)") else text
