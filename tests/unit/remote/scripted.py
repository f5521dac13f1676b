"""Slurm's commands with scripted answers, for a run in a test's own folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import commands

WHEN = "2020-11-21T05:49:34|2020-11-21T05:49:36|2020-11-21T05:49:46"
Answer = str | Exception
DOWN = commands.Controller("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
FORGOTTEN = commands.UnknownJob("slurm_load_jobs error: Invalid job id specified")
NO_ACCOUNTS = commands.Controller("Slurm accounting storage is disabled")


class Scripted:
    """Slurm's commands with scripted answers. The last answer of a command is repeated."""

    def __init__(self, **answers: list[Answer] | Answer) -> None:
        self.answers = {name: list(answer) if isinstance(answer, list) else [answer] for name, answer in answers.items()}
        self.asked: list[tuple[str, ...]] = []
        self.variables: dict[str, dict[str, str]] = {}

    def __call__(self, *words: str, folder: str | None = None, variables: Mapping[str, str] = commands.NOTHING) -> str:
        self.asked.append(words)
        self.variables[words[0]] = dict(variables)
        answers = self.answers.get(words[0], [NO_ACCOUNTS])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def count(self, name: str) -> int:
        return sum(words[0] == name for words in self.asked)


def spec(**changes: Any) -> dict[str, object]:
    file = {"name": "job", "text": "#!/bin/bash\n", "copies": 1, "tasks": 0, "after": "", "job_name": "2.1"}
    request = {"files": [file], "spread": False, "ranks": 1, "show_queue": False, "cancel_last": False, "module": "2"}
    return {"run_id": "r1", "exercise": "2.1", "files": [], "slurm": {**request, **changes}}


def row(job: str, state: str, reason: str = "None", node: str = "", timestamp: str = WHEN) -> str:
    return f"{job}|{state}|{reason}|{node}|{timestamp}\n"


def log() -> str:
    return Path(Job("r1").path("logs", "launcher.log")).read_text(encoding="utf-8")


def write_end_note(job: str, code: int) -> None:
    Path(Job("r1").path(f"ended-{job}")).write_text(f"{code}\n", encoding="utf-8")


def details(job: str, state: str, code: str = "0:0", restarts: int = 0) -> str:
    return f"JobId={job} JobState={state} ExitCode={code} Restarts={restarts} SubmitTime=2020-11-21T05:49:34\n"
