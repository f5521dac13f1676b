"""What a cluster can never give is refused before anything is submitted, in our words; what jobs wrote joins their rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpucourse.errors import MissingError, UsageError
from gpucourse.launch.planning import LaunchRequest, WrittenBatch
from gpucourse.model.deployment import deployment_class
from gpucourse.model.event import Note
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Mode
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import JobRow, SlurmRun
from gpucourse.remote.slurm_client import ComputeNode, Partition, SlurmCluster
from gpucourse.runs import slurm_planning, slurm_runs
from gpucourse.workspace.paths import RunPaths


def node(name: str, *, state: str = "idle", gpus: int = 1, reason: str = "") -> ComputeNode:
    return ComputeNode(name=name, state=state, gpus=gpus, cores=4, reason=reason)


def partition(*nodes: ComputeNode, name: str = "gpu", default: bool = True, open_: bool = True) -> Partition:
    return Partition(name=name, default=default, open=open_, nodes=nodes)


def cluster(*partitions: Partition) -> SlurmCluster:
    return SlurmCluster(version="slurm-wlm 22.05.8", user="me", home="/home/me", partitions=partitions)


def request(kind: str = "slurm", gpus: int = 1, **parameters: object) -> LaunchRequest:
    launch: dict[str, object] = {"kind": kind}
    if kind == "slurm":
        launch["slurm"] = {"gpus": gpus, "partition": "partition"}
    exercise = Exercise.model_validate(
        {
            "id": "2.9", "title": "T", "goal": "g", "minutes": 1, "script": "s.py", "tasks": ["t"], "hints": ["h"],
            "launch": launch,
            "parameters": [{"name": "partition", "type": "str", "default": "gpu", "help": "queue"}],
        }
    )  # fmt: skip
    return LaunchRequest(
        exercise=exercise, launcher="slurm", script="s.py", parameters=parameters, arguments=(), uploads=(), timeout_s=60
    )


def enough(wanted: LaunchRequest, where: Partition, nodes: int, gpus: int = 1, *, mode: Mode = "local") -> list[str]:
    """What is told on the way; raises where it is not enough."""
    told: list[str] = []
    context: Any = SimpleNamespace(watch=lambda event: told.append(event.text if isinstance(event, Note) else ""))
    record = {"target": mode, "stack": f"02-{mode}", "module": "2", "cloud": None}
    lab = deployment_class(mode)(uid="u", template="t", phase="ready", created="", updated="", nodes_wanted=1, **record)  # type: ignore[arg-type]  # by name
    slurm_planning._enough(context, wanted, where, nodes, gpus, deploy=slurm_planning._deploy(lab))
    return told


def test_a_named_partition_must_exist_and_an_unnamed_one_is_the_default() -> None:
    mine, other = partition(node("a"), name="a100"), partition(node("b"), name="cpu", default=False)
    assert slurm_planning._partition(request(partition="gpu"), cluster(mine, other)).name == "a100"
    assert slurm_planning._partition(request(partition="cpu"), cluster(mine, other)).name == "cpu"
    with pytest.raises(UsageError, match="no partition 'big'; it has: a100, cpu") as caught:
        slurm_planning._partition(request(partition="big"), cluster(mine, other))
    assert caught.value.hint == "gpucourse run 2.9 --set partition=a100"
    with pytest.raises(UsageError, match="it has: cpu"):
        slurm_planning._partition(request(partition="gpu"), cluster(other))


def test_a_job_goes_to_the_partition_that_its_own_file_or_the_login_names() -> None:
    """As sbatch reads them; the record, the screen and the warning about GPUs are of that partition."""
    here = cluster(
        partition(node("c1", gpus=0), name="cpu"),
        partition(node("g1"), name="gpu-short", default=False),
        partition(node("g2"), name="gpu", default=False),
    )
    usual = request(partition="gpu")
    own = replace(usual, written=WrittenBatch(name="my_job", text="#!/bin/bash\n#SBATCH --partition=gpu-short\n"))
    bare = replace(usual, written=WrittenBatch(name="my_job", text="#!/bin/bash\n#SBATCH --gres=gpu:1\n"))
    several = replace(here, batch_partition="gpu-short,gpu", session_partition="cpu")
    assert [slurm_planning._partition(wanted, here).name for wanted in (usual, own, bare)] == ["gpu", "gpu-short", "cpu"]
    assert [slurm_planning._partition(wanted, several).name for wanted in (usual, own)] == ["gpu-short,gpu"] * 2
    assert [node.name for node in slurm_planning._partition(own, several).nodes] == ["g1", "g2"]
    assert slurm_planning._partition(replace(usual, launcher="slurm-pty"), several).name == "cpu"
    typed = replace(own, typed=frozenset({"partition"}), parameters={"partition": "cpu"})
    assert slurm_planning._partition(typed, several).name == "cpu"
    assert enough(own, slurm_planning._partition(own, here), 1) == []
    absent = replace(own, written=WrittenBatch(name="my_job", text="#!/bin/bash\n#SBATCH --partition=gpu\n"))
    with pytest.raises(UsageError, match="no partition 'gpu'"):
        slurm_planning._partition(absent, cluster(partition(node("c1", gpus=0), name="cpu")))


def test_a_partition_that_is_down_is_named() -> None:
    with pytest.raises(UsageError, match="gpu is down"):
        slurm_planning._partition(request(partition="gpu"), cluster(partition(node("a"), open_=False)))


def test_more_nodes_than_there_are() -> None:
    with pytest.raises(UsageError, match="4 nodes were asked for, and the partition gpu has 2 nodes with 1 GPU each") as caught:
        enough(request(), partition(node("a"), node("b")), 4)
    assert caught.value.hint == "gpucourse run 2.9 --nodes 2; a larger lab: gpucourse deploy 2 --nodes 4"


def test_a_larger_lab_is_of_the_same_kind_and_of_our_own() -> None:
    hints = []
    modes: tuple[Mode, ...] = ("aws", "hosts")
    for mode in modes:
        with pytest.raises(UsageError) as caught:
            enough(request(), partition(node("a"), node("b")), 4, mode=mode)
        hints.append(caught.value.hint)
    assert hints[0].endswith("; a larger lab: gpucourse deploy 2 --target aws --nodes 4")
    assert hints[1] == "gpucourse run 2.9 --nodes 2"


def test_the_launcher_that_was_chosen_stays_in_the_hint() -> None:
    with pytest.raises(UsageError) as caught:
        enough(request("torchrun"), partition(node("a"), node("b")), 4)
    assert caught.value.hint.startswith("gpucourse run 2.9 --launcher slurm --nodes 2;")


def test_more_processes_than_a_node_has_cores() -> None:
    with pytest.raises(
        UsageError, match=r"8 processes on each node were asked for, and no node .* has more than 4 cores"
    ) as caught:
        enough(replace(request(), processes=8), partition(node("a")), 1)
    assert "gpucourse ssh 2 -- \"sinfo -N -o '%N %c'\" shows" in str(caught.value.hint)


def test_more_gpus_than_a_node_has() -> None:
    with pytest.raises(
        UsageError, match="asks for 2 GPUs on each node, and no node of the partition gpu has more than 1"
    ) as caught:
        enough(request(gpus=2), partition(node("a")), 1, gpus=2)
    assert "gpucourse ssh 2 -- \"sinfo -N -o '%N %G'\" shows" in str(caught.value.hint)


def test_nodes_that_are_down_or_drained_are_named_with_their_reason() -> None:
    where = partition(
        node("a"), node("b", state="down*", reason="Not responding"), node("c", state="drained", reason="bad fan")
    )
    with pytest.raises(MissingError, match=r"b is down\* \(Not responding\); c is drained \(bad fan\)") as caught:
        enough(request(), where, 2)
    assert "scontrol update nodename=b state=resume" in caught.value.hint
    assert enough(request(), where, 1) == [
        "b is down* (Not responding); the others are enough", "c is drained (bad fan); the others are enough",
    ]  # fmt: skip


def test_a_cluster_without_gpus_runs_the_jobs_without_and_says_so() -> None:
    where = partition(node("a", gpus=0))
    assert slurm_planning.choose_gpus(request(), where, 1) == 0
    assert "has a GPU that Slurm knows of" in enough(request(), where, 1, gpus=0)[0]


def record(*rows: JobRow, own: str | None = None) -> RunRecord:
    return RunRecord(
        id="r", exercise="2.1", module="2", stack="02-local", mode="local", launcher="slurm", state="succeeded", created="now",
        nodes=["node0"], own_script=own, slurm=SlurmRun(partition="gpu", nodes=1, gpus=1, jobs=list(rows)),
    )  # fmt: skip


def test_what_a_job_wrote_joins_its_row(tmp_path: Path) -> None:
    files = RunPaths(tmp_path)
    folder = files.node_outputs("node0")
    folder.mkdir(parents=True)
    (folder / "job-7.json").write_text(json.dumps({"gpus_given": 1, "state": "a lie"}))
    (folder / "queue.json").write_text(json.dumps({"queue": [{"job": "8", "state": "PENDING", "reason": "Resources"}]}))
    rows = (
        JobRow(row=0, job="7", file="job", state="COMPLETED", node="node1", code=0),
        JobRow(row=1, job="8", file="job", state="CANCELLED", asked=True),
    )
    values = (slurm_runs.add_metrics({"mine": 1}, record(*rows), files) or {})["slurm"]
    assert (values["jobs"][0]["gpus_given"], values["jobs"][0]["state"]) == (1, "COMPLETED")  # Slurm's word counts
    assert [job["job"] for job in values["started_jobs"]] == ["7"]
    assert (values["waiting"], values["waiting_with_reason"], values["cancelled_on_purpose"]) == (1, 1, 1)


def test_a_single_job_leaves_open_what_only_several_can_show(tmp_path: Path) -> None:
    values = (
        slurm_runs.add_metrics(None, record(JobRow(row=0, job="7", file="job", state="COMPLETED")), RunPaths(tmp_path)) or {}
    )["slurm"]
    assert (values["waiting_with_reason"], values["cancelled_on_purpose"]) == (None, None)


def test_a_script_that_measures_nothing_is_not_judged(tmp_path: Path) -> None:
    rows = JobRow(row=0, job="7", file="job", state="COMPLETED")
    assert slurm_runs.add_metrics(None, record(rows, own="mine.py"), RunPaths(tmp_path)) is None


def test_how_many_jobs_ran_at_once_and_what_they_left(tmp_path: Path) -> None:
    files = RunPaths(tmp_path)
    files.logs.mkdir()
    for name in ("node1-rank0.log", "node2-rank1.log", "node0-launcher.log"):
        (files.logs / name).touch()
    spans = [("10", "20"), ("12", "14"), ("14", "16"), ("15", "15"), ("20", "30")]
    rows = [
        JobRow(row=place, job=str(place), file="my_array", state="COMPLETED", node="node[1-2]", started=begun, ended=ended)
        for place, (begun, ended) in enumerate(spans)
    ]
    other = JobRow(row=9, job="9", file="gather", state="COMPLETED", node="node1", started="12", ended="13")
    values = (slurm_runs.add_metrics(None, record(*rows, other), files) or {})["slurm"]
    assert (values["most_at_once"], values["output_files"]) == (2, 2)
    assert values["started_jobs"][0]["nodes"] == 2
    short = JobRow(row=0, job="1", file="job", state="COMPLETED", node="node1", started="10", ended="10")
    assert (slurm_runs.add_metrics(None, record(short), files) or {})["slurm"]["most_at_once"] == 1
