"""Judge a repaired copy: a job must report the node that it runs on."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("job {job} ran on {right}, and it reports {given}")}
ROW = {"job": "7", "node": "node2", "host": "node2"}
RUNS = {
    "right": {"slurm": {"started_jobs": [ROW]}},
    "wrong": {"slurm": {"started_jobs": [ROW | {"host": "head"}]}},
}


def judge(part: Part) -> None:
    """Compare the node that each job reports with the node in Slurm's records."""
    jobs = part.metrics["slurm"]["started_jobs"]
    for row in jobs:
        if row.get("host") != row["node"]:
            raise part.wrong("still", job=row["job"], right=row["node"], given=row.get("host"))
    part.note(f"{len(jobs)} jobs report the node that Slurm gave them")
