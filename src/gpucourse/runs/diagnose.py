"""The failure coach's diagnosis of a run, based on the run's local files: its plan, logs and record."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpucourse.errors import MissingError
from gpucourse.model.diagnosis import Diagnosis
from gpucourse.model.record import RunRecord, find_end_state
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_record
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.coach.evidence import Log

_SIGNALLED = {137, 143}  # KILL and TERM, which this program sends to the remaining processes


@dataclass(frozen=True)
class _PlannedNode:
    name: str
    python: str = ""


@dataclass(frozen=True)
class _Command:
    node: _PlannedNode
    argv: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True)
class StoredPlan:
    """The part of `plan.json` that is read again later."""

    commands: tuple[_Command, ...] = ()
    timeout_s: float | None = None
    batch: dict[str, Any] | None = None

    @property
    def ranks(self) -> dict[str, tuple[int, ...]]:
        """Return the planned ranks of each node; an empty dictionary under Slurm, which places the ranks itself."""
        return {} if self.batch else {command.node.name: command.ranks for command in self.commands}


def read_plan(files: RunPaths) -> StoredPlan:
    """Return the plan of a run. Return an empty plan if the file is missing, damaged, or in another format."""
    try:
        return read_record(files.plan, StoredPlan) or StoredPlan()
    except MissingError:
        return StoredPlan()


def diagnose(paths: WorkspacePaths, record: RunRecord, *, loss: str = "") -> list[Diagnosis]:
    """Return the diagnoses of a run, the most likely first. `loss`: why nodes cannot be reached; empty if all can."""
    from gpucourse.coach import jobs
    from gpucourse.coach.evidence import Evidence
    from gpucourse.coach.recognise import recognise

    if record.slurm is not None and record.state != "succeeded":
        of_jobs = jobs.diagnose_jobs(record.slurm.jobs, exercise=shlex.join(record.run_words), lab=record.module)
        if of_jobs or record.state in {"lost", "cancelled"}:
            return of_jobs
    files = runs.files_of(paths, record)
    plan = read_plan(files)
    ended_well = {exit_.rank for exit_ in record.rank_exits if exit_.code == 0}
    symptoms = recognise(
        Evidence(
            exercise=shlex.join(record.run_words),
            module=record.module,
            run=record.id,
            state=find_end_state(record.node_exits) if record.drill else record.state,
            mode=record.mode,
            planned=plan.ranks,
            logs=tuple(_logs(record, files)),
            node_exits=tuple(record.node_exits),
            silences=tuple(silence for silence in record.silences if silence.rank not in ended_well),
            skew_s=record.clock_skew_s,
            lost=loss,
            typed=_join_command(plan),
            python={command.node.name: command.node.python for command in plan.commands},
        )
    )
    return list(symptoms)


def _join_command(plan: StoredPlan) -> str:
    """Return the environment and the command line of the first node. The other nodes' commands differ only in the node's
    number."""
    if not plan.commands:
        return ""
    first = plan.commands[0]
    return " ".join([*(f"{name}={value}" for name, value in first.env.items()), shlex.join(first.argv)])


def _logs(record: RunRecord, files: RunPaths) -> list[Log]:
    from gpucourse.coach.evidence import TAIL_BYTES, Log

    ends = {exit_record.rank: exit_record for exit_record in record.rank_exits}
    codes = {exit_record.node: exit_record.code for exit_record in record.node_exits}
    first = record.first_failure
    logs = []
    for (node, rank), path in files.all_logs().items():
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
        if record.restarts:  # failures before the last restart no longer matter
            text = text.rpartition(f"--- restart {record.restarts} ---\n")[2]
        end = ends.get(rank) if rank is not None else None
        ended_by_us = end is not None and end.code in _SIGNALLED and (first is None or end.rank != first.rank)
        logs.append(
            Log(
                node=node,
                rank=rank,
                text=text,
                code=codes.get(node) if rank is None else end.code if end else None,
                at=None if end is None else end.at - record.clock_skew_s.get(node, 0.0),
                ended_by_us=ended_by_us,
            )
        )
    return logs
