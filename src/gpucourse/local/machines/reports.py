"""Report on machines from outside: which daemons run, what Slurm reports, and which errors are in its logs. This module also
puts excluded nodes back into use, with Slurm's own commands, which run next to its daemons."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucourse.local.machines import daemons

OTHER_KEY = "munge refuses messages: the machine's munge.key differs from the head's"

_LAST_BYTES = 16_384
_SYMPTOMS = (  # the messages of munge and Slurm, and what they mean; the newest that matches is reported
    (r"Rewound credential", "its clock is ahead of the others': munge refuses messages from the future"),
    (r"Expired credential", "its clock differs from the others': munge refuses messages older than five minutes"),
    (r"Invalid cred(ential)?\b", OTHER_KEY),
    (r"Munge encode failed|Failed to access \"[^\"]*munge", "munged does not answer on it"),
    (r"has invalid account|no new list given back", "without accounting, this Slurm reports wrong reasons for waiting jobs"),
    (r"gres/gpu count reported lower than configured", "Slurm counts fewer GPUs than it should have"),
    (r"Orphan StepId", "slurmctld was killed before it had stored a job that had just begun: it is lost, submit it again"),
    (r"Duplicate jobid", "slurmctld was killed before it had stored a job that had just begun"),
)
_REFUSED = re.compile(r"Unable to decode|Protocol authentication error")  # this line follows every error of munge
_START_LINE = re.compile(r"slurm(?:ctl)?d (?:version \S+ )?started")
_GOOD_STATES = {"idle", "mixed", "allocated", "completing", "allocated+", "planned"}


def list_absent(machine: Mapping[str, Any], pid: int) -> list[str]:
    """Return the daemons that should run on the machine whose first process is `pid`, but do not run."""
    return [name for name in daemons.list_daemons(machine) if daemons.find_process(name, f"/proc/{pid}/root") is None]


def describe_ended_daemons(absent: Sequence[str]) -> str:
    """Describe a node on which the daemons of these names have ended."""
    text = f"its {' and '.join(absent)} {'has' if len(absent) == 1 else 'have'} ended"
    if "slurmctld" in absent:
        text += ": Slurm accepts no commands; running jobs continue, but a job that was just submitted may restart or be lost"
    return text


def symptom(logs: str) -> str:
    """Return the meaning of a daemon's log since its last start, or an empty string if the log contains no known message."""
    logs = _START_LINE.split(logs)[-1]
    newest, meaning_of_newest = -1, ""
    for pattern, meaning in _SYMPTOMS:
        for match in re.finditer(pattern, logs):
            if match.start() > newest:
                newest, meaning_of_newest = match.start(), meaning
    return meaning_of_newest or (OTHER_KEY if _REFUSED.search(logs) else "")


def find_distrust(pid: int | str) -> str:
    """Return why the slurmd of a machine has accepted nothing from the head since it started, according to its log.

    Return an empty string if it has accepted something. `pid`: the machine's first process.
    """
    meaning_of_log = find_symptom([log_of(pid, "slurmd")])
    return meaning_of_log if meaning_of_log in {meaning for _pattern, meaning in _SYMPTOMS[:3]} else ""


def has_key(pid: int, key: str) -> bool:
    """Return whether the machine whose first process is `pid` has this munge.key."""
    try:
        return Path(f"/proc/{pid}/root{daemons.MUNGE_KEY}").read_text(encoding="utf-8") == key
    except (OSError, UnicodeDecodeError):
        return False


def explain(state: str, meaning: str) -> str:
    """Return what is wrong with a node according to Slurm, followed by the meaning of the node's logs or of Slurm's reason."""
    meaning = meaning or symptom(state)
    return f"{state} ({meaning})" if state and meaning else state


def find_symptom(logs: Iterable[Path]) -> str:
    """Return the meaning of the first log that contains a known message, or an empty string."""
    return next(filter(None, (symptom(end_of(log)) for log in logs)), "")


def log_of(pid: int | str, name: str) -> Path:
    """Return the path of a daemon's log in the machine whose first process is `pid`."""
    return Path(f"/proc/{pid}/root{daemons.LOGS[name]}")


def end_of(log: Path) -> str:
    """Return the end of a log, or an empty string if there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _LAST_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def parse_held_jobs(queue: str) -> list[str]:
    """Return the jobs in the output of `squeue -h -o '%i|%r'` that Slurm holds because a node failed to start them."""
    rows = (line.partition("|") for line in queue.splitlines())
    return [job for job, _, reason in rows if reason.replace("_", " ").lower() == "launch failed requeued held"]


def read_states(text: str) -> dict[str, str]:
    """Return what is wrong with each node in the output of `sinfo -h -N -o '%N|%T|%G|%E'`, or an empty string if nothing is."""
    node_states = {}
    for line in text.splitlines():
        name, state, gres, reason = (*line.split("|", 3), "", "", "")[:4]
        if not name:
            continue
        bare = state.rstrip("*~#!%$@+^-").lower()
        if bare in _GOOD_STATES and not state.endswith("*"):
            node_states[name] = "" if "gpu:1" in gres else f"Slurm counts no GPU on it ({gres})"
        else:
            node_states[name] = f"Slurm says {state}" + (f": {reason}" if reason and reason != "none" else "")
    return node_states


_SINFO = ("timeout", "3", "sinfo", "-h", "-N", "-o", "%N|%T|%G|%E")
_HELD = ("timeout", "3", "squeue", "-h", "-t", "PENDING", "-o", "%i|%r")
_RESUME_S, _POLL_S = 3.0, 0.05


@dataclass(frozen=True)
class SlurmController:
    """A Slurm cluster, and the environment with which Slurm's commands reach it."""

    environment: Mapping[str, str]

    def output(self, argv: Sequence[str]) -> dict[str, Any]:
        """Return the result of a command: its `code`, `output` and `errors`."""
        process = subprocess.run(argv, env=self.environment, capture_output=True, text=True, errors="replace", check=False)
        return {"code": process.returncode, "output": process.stdout, "errors": process.stderr}

    def state(self, name: str) -> str:
        """Return what is wrong with this node according to Slurm, or an empty string if nothing is."""
        return read_states(self.output(_SINFO)["output"]).get(name, "")

    def judge_nodes(self, daemon_states: Mapping[str, str], head: str, meanings: Mapping[str, str]) -> dict[str, str]:
        """Return what is wrong with each node according to its daemons or, if they are healthy, according to Slurm.

        `daemon_states`: what is wrong with each node's daemons.
        `meanings`: the meaning of each node's logs.
        """
        text = self.output(_SINFO)
        if text["code"]:
            complaint = f"Slurm does not answer: {text['errors'].strip()[-200:]}"
            return {**daemon_states, head: daemon_states[head] or explain(complaint, meanings.get(head, ""))}
        states = read_states(text["output"])
        if held_jobs := self._list_held_jobs():
            states[head] = f"Slurm holds job {', '.join(held_jobs)} because it failed to start"
        return {name: state or explain(states.get(name, ""), meanings.get(name, "")) for name, state in daemon_states.items()}

    def release(self) -> None:
        """Release the jobs that Slurm holds because a node failed to start them."""
        if held_jobs := self._list_held_jobs():
            self.output(["scontrol", "release", ",".join(held_jobs)])

    def resume(self, name: str) -> None:
        """Put this node back into use if a person or Slurm itself took it out of use."""
        deadline = time.monotonic() + _RESUME_S
        while time.monotonic() < deadline:
            state = self.state(name)
            if not any(word in state for word in ("drain", "inval", "fail", "down")) or "down*" in state:
                return
            self.output(["scontrol", "update", f"nodename={name}", "state=resume"])
            time.sleep(_POLL_S)

    def _list_held_jobs(self) -> list[str]:
        return parse_held_jobs(self.output(_HELD)["output"])
