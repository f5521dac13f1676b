"""Run Slurm's own commands next to its daemons. They report the state of its nodes, and put nodes that Slurm excludes back into
use."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpucourse.local.machines import reports

_SINFO = ("timeout", "3", "sinfo", "-h", "-N", "-o", "%N|%T|%G|%E")
_HELD = ("timeout", "3", "squeue", "-h", "-t", "PENDING", "-o", "%i|%r")
_RESUME_S, _POLL_S = 3.0, 0.05


@dataclass(frozen=True)
class SlurmController:
    """A Slurm cluster. Commands with this environment reach it."""

    environment: Mapping[str, str]

    def output(self, argv: Sequence[str]) -> dict[str, Any]:
        """Return the result of a command: its `code`, `output` and `errors`."""
        process = subprocess.run(argv, env=self.environment, capture_output=True, text=True, errors="replace", check=False)
        return {"code": process.returncode, "output": process.stdout, "errors": process.stderr}

    def state(self, name: str) -> str:
        """Return what is wrong with this node according to Slurm, or an empty string if nothing is."""
        return reports.states(self.output(_SINFO)["output"]).get(name, "")

    def judge_nodes(self, daemon_states: Mapping[str, str], head: str, meanings: Mapping[str, str]) -> dict[str, str]:
        """Return what is wrong with each node according to its daemons or, if they are healthy, according to Slurm.

        `daemon_states`: what is wrong with each node's daemons.
        `meanings`: the meaning of each node's logs.
        """
        text = self.output(_SINFO)
        if text["code"]:
            complaint = f"Slurm does not answer: {text['errors'].strip()[-200:]}"
            return {**daemon_states, head: daemon_states[head] or reports.explain(complaint, meanings.get(head, ""))}
        states = reports.states(text["output"])
        if held_jobs := self._list_held_jobs():
            states[head] = f"Slurm holds job {', '.join(held_jobs)} because it failed to start"
        return {
            name: state or reports.explain(states.get(name, ""), meanings.get(name, ""))
            for name, state in daemon_states.items()
        }

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
        return reports.parse_held_jobs(self.output(_HELD)["output"])
