from __future__ import annotations

import json
from dataclasses import replace

from gpucourse.model.slurm import SlurmRun
from gpucourse.runs.connect import Connections
from gpucourse.runs.settle import describe_waits, list_settled_runs
from gpucourse.workspace import runs
from tests.learning import Learning, deploy
from tests.unit.remote.agent_link import AgentNodes
from tests.unit.runs.test_connect import SilentNodes


def test_list_settled_runs_has_a_reason_for_one_whose_nodes_are_silent_and_for_one_that_cannot_be_read(
    learning: Learning,
) -> None:
    deploy(learning)
    finished_run, silent_run, damaged = learning.record(), learning.record(state="running", collected=False), learning.record()
    (learning.folder(damaged) / "run.json").write_text("{")
    listing, errors = list_settled_runs(replace(learning.context, make_transport=lambda _key: SilentNodes()))
    assert [(item.record.id, item.record.state, item.detail) for item in listing] == [
        (finished_run.id, "succeeded", ""),
        (silent_run.id, "running", "node0 does not answer"),
    ]
    assert [damaged.id in error.what for error in errors] == [True]


def test_describe_waits_asks_a_cluster_once_for_all_its_runs(learning: Learning) -> None:
    deploy(learning)
    nodes, expected = AgentNodes(learning.root / "nodes"), "2031-02-03T04:05:06"
    records = [learning.record(state="running", collected=False) for _ in range(3)]
    for number, record in enumerate(records, 1):
        record.slurm = SlurmRun(partition="gpu", nodes=1, gpus=0)
        runs.save(learning.context.paths, record)
        folder = nodes.home("node0") / ".gpucourse" / "jobs" / record.id
        (folder / "logs").mkdir(parents=True)
        jobs = [{"id": str(number), "file": "job", "tasks": 0, "numbers": None}]
        request = {"slurm": {"files": [{"name": "job"}]}}
        for name, content in {"jobs.json": {"jobs": jobs}, "slurm.json": request, "submitted": {}, "started": {}}.items():
            (folder / name).write_text(json.dumps(content))
    programs = nodes.home("node0") / "bin"
    programs.mkdir()
    (programs / "squeue").write_text(
        "#!/bin/sh\necho asked >> ${0%/*}/questions\nfor job in 1 2 3; do\n"
        f'echo "$job|PENDING|Priority||2026-01-31T14:25:01|{expected}|N/A"; done\n'
    )
    (programs / "squeue").chmod(0o700)
    context = replace(learning.context, make_transport=lambda _key: nodes)
    listing, _ = list_settled_runs(context)
    reasons = {item.record.id: item.detail for item in listing}
    sentence = "is PENDING (Priority): other jobs are ahead of it; expected to start at 2031-02-03 04:05:06, the cluster's time"
    assert reasons == {record.id: f"job {number} {sentence}" for number, record in enumerate(records, 1)}
    with Connections(context) as connections:
        assert describe_waits(records, connections) == reasons
    assert (programs / "questions").read_text() == "asked\n" * 2
