"""The submitted batch file and its number of GPUs. A request that the cluster can never fulfil is refused in our words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpucourse.context import Context
from gpucourse.errors import CheckFailed, MissingError, UsageError
from gpucourse.launch import slurm as batch
from gpucourse.launch.launcher import LaunchRequest, WrittenBatch
from gpucourse.model.deployment import Deployment, SlurmDeployment, deployment_class
from gpucourse.model.event import Event, Note
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Mode
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import JobRow, SlurmRun
from gpucourse.model.slurm_facts import PartitionFacts, ProbeFacts, SlurmFacts
from gpucourse.model.slurm_settings import SlurmSettings
from gpucourse.remote.slurm_client import ComputeNode, Partition, SlurmCluster
from gpucourse.runs import slurm
from gpucourse.runs.parts import list_part_files
from gpucourse.runs.prepare import make_launch_request
from gpucourse.runs.resolve import RunRequest, resolve
from gpucourse.runs.slurm import choose_gpus, find_written_batch
from gpucourse.workspace.paths import RunPaths
from tests.unit.labs.aws.fakes import context_in

TYPED = RunRequest(exercise="2.9")
SOLUTIONS = Path(__file__).parent.parent.parent.parent / "exercises" / "02-slurm" / "solutions"


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def context(tmp_path: Path, events: list[Event]) -> Iterator[Context]:
    context = replace(context_in(tmp_path)[0], watch=events.append)
    yield context
    context.close()


def find(context: Context, exercise_id: str, text: str | None = None, **options: object) -> WrittenBatch | None:
    exercise = context.catalog.exercise(exercise_id)[1]
    (file,) = list_part_files(context, exercise).values()
    if text is not None:
        file.write_text(text)
    return find_written_batch(context, resolve(context, RunRequest(exercise=exercise_id, **options)))  # type: ignore[arg-type]


def test_find_written_batch_ignores_an_unedited_file(context: Context) -> None:
    assert find(context, "2.1") is None
    assert find(context, "2.2") is None  # a part, but none to submit


@pytest.mark.parametrize(
    ("exercise", "name", "tasks"), [("2.1", "my_job", 0), ("2.3", "my_multi_node", 0), ("2.4", "my_array", 4)]
)
def test_find_written_batch_returns_a_right_file_as_it_is(context: Context, exercise: str, name: str, tasks: int) -> None:
    text = (SOLUTIONS / f"{name}.sbatch").read_text()
    assert find(context, exercise, text) == WrittenBatch(name=name, text=text, tasks=tasks)


def test_find_written_batch_refuses_a_wrong_file_with_the_reason(context: Context) -> None:
    text = (SOLUTIONS / "my_job.sbatch").read_text().replace("#SBATCH --gres=gpu:1\n", "")
    with pytest.raises(CheckFailed, match=r"my_job\.sbatch was not submitted: your file asks for no GPU"):
        find(context, "2.1", text)
    assert find(context, "2.1", text, script=Path("mine.py")) is None
    assert find(context, "2.1", text, launcher="torchrun") is None


@pytest.mark.parametrize(
    ("exercise", "procs", "nodes", "gpus", "tasks"),
    [
        ("1.1", None, 1, 1, 1), ("5.1", 4, 1, 1, 1), ("2.1", None, 1, 1, 1), ("3.2", None, 1, 4, 4), ("3.2", 1, 1, 1, 1),
        ("3.2", 6, 1, 4, 6), ("3.2", None, 2, 2, 2), ("3.2", 1, 2, 1, 1),
    ],
)  # fmt: skip
def test_choose_gpus_is_one_for_each_process_and_no_more(
    context: Context, exercise: str, procs: int | None, nodes: int, gpus: int, tasks: int
) -> None:
    run = resolve(context, RunRequest(exercise=exercise, launcher="slurm", processes=procs))
    launch_request = make_launch_request(context, run, local=False)
    counts = (4, 2, 0)
    machines = (ComputeNode(name=f"n{count}", state="idle", gpus=count, cores=16, reason="") for count in counts)
    partition = Partition(name="gpu", default=True, open=True, nodes=tuple(machines))
    assert choose_gpus(launch_request, partition, nodes) == gpus
    assert batch.tasks_of(launch_request, gpus) == tasks


def test_find_written_batch_prefers_the_file_of_the_course_for_typed_values(context: Context, events: list[Event]) -> None:
    text = (SOLUTIONS / "my_array.sbatch").read_text()
    assert find(context, "2.4", text, settings={"values": "16,32"}) is None
    assert "the course's own file is submitted" in str(events[-1])


def node(name: str, *, state: str = "idle", gpus: int = 1, reason: str = "") -> ComputeNode:
    return ComputeNode(name=name, state=state, gpus=gpus, cores=4, reason=reason)


def partition(*nodes: ComputeNode, name: str = "gpu", default: bool = True, open_: bool = True) -> Partition:
    return Partition(name=name, default=default, open=open_, nodes=nodes)


def cluster(*partitions: Partition) -> SlurmCluster:
    return SlurmCluster(partitions=partitions)


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


def enough(launch_request: LaunchRequest, queue: Partition, nodes: int, gpus: int = 1, *, mode: Mode = "local") -> list[str]:
    """Return the reported notes. Raise an error if the cluster does not have enough resources."""
    messages: list[str] = []
    slurm._check_nodes(
        lambda event: messages.append(event.text if isinstance(event, Note) else ""),
        launch_request,
        queue,
        nodes,
        gpus,
        lab(mode),
        RunRequest(exercise="2.9", launcher=None if launch_request.exercise.launch.kind == "slurm" else "slurm"),
    )
    return messages


def lab(mode: Mode = "local", **values: object) -> Deployment:
    record = {"target": mode, "stack": f"02-{mode}", "module": "2", "cloud": None, **values}
    return deployment_class(mode)(uid="u", template="t", phase="ready", created="", updated="", nodes_wanted=1, **record)  # type: ignore[arg-type]  # by name


def choose(
    launch_request: LaunchRequest, slurm_cluster: SlurmCluster, deployment: Deployment | None = None, **settings: Any
) -> Partition:
    return slurm._choose_partition(launch_request, slurm_cluster, deployment or lab(), SlurmSettings(**settings), 1, TYPED)


def test_choose_partition_of_an_unknown_name_is_refused_and_of_none_is_the_default() -> None:
    gpu_partition, cpu_partition = partition(node("a"), name="a100"), partition(node("b"), name="cpu", default=False)
    assert choose(request(partition="gpu"), cluster(gpu_partition, cpu_partition)).name == "a100"
    assert choose(request(partition="cpu"), cluster(gpu_partition, cpu_partition)).name == "cpu"
    with pytest.raises(UsageError, match="no partition 'big'; it has: a100, cpu") as caught:
        choose(request(partition="big"), cluster(gpu_partition, cpu_partition))
    assert caught.value.hint == "gpucourse run 2.9 --set partition=a100"
    with pytest.raises(UsageError, match="it has: cpu"):
        choose(request(partition="gpu"), cluster(cpu_partition))


def test_choose_partition_returns_the_one_that_its_file_or_the_login_names() -> None:
    """Choose as sbatch does. The record, the screen and the warning about GPUs refer to that partition."""
    site = cluster(
        partition(node("c1", gpus=0), name="cpu"),
        partition(node("g1"), name="gpu-short", default=False),
        partition(node("g2"), name="gpu", default=False),
    )
    usual = request(partition="gpu")
    own_request = replace(usual, written_batch=WrittenBatch(name="my_job", text="#!/bin/bash\n#SBATCH --partition=gpu-short\n"))
    bare = replace(usual, written_batch=WrittenBatch(name="my_job", text="#!/bin/bash\n#SBATCH --gres=gpu:1\n"))
    several = replace(site, batch_partition="gpu-short,gpu", session_partition="cpu")
    assert [choose(launch_request, site).name for launch_request in (usual, own_request, bare)] == [
        "gpu",
        "gpu-short",
        "cpu",
    ]
    assert [choose(launch_request, several).name for launch_request in (usual, own_request)] == ["gpu-short,gpu"] * 2
    assert [node.name for node in choose(own_request, several).nodes] == ["g1", "g2"]
    assert choose(replace(usual, launcher="slurm-pty"), several).name == "cpu"
    named_request = replace(own_request, typed=frozenset({"partition"}), parameters={"partition": "cpu"})
    assert choose(named_request, several).name == "cpu"
    assert enough(own_request, choose(own_request, site), 1) == []
    absent = replace(own_request, written_batch=WrittenBatch(name="my_job", text="#!/bin/bash\n#SBATCH --partition=gpu\n"))
    with pytest.raises(UsageError, match="no partition 'gpu'"):
        choose(absent, cluster(partition(node("c1", gpus=0), name="cpu")))


def test_choose_partition_refuses_one_that_is_down() -> None:
    with pytest.raises(UsageError, match="gpu is down"):
        choose(request(partition="gpu"), cluster(partition(node("a"), open_=False)))


@pytest.mark.parametrize(
    ("kind", "mode", "hint"),
    [
        ("slurm", "local", "gpucourse run 2.9 --nodes 2; a larger lab: gpucourse deploy 2 --nodes 4"),
        ("slurm", "aws", "gpucourse run 2.9 --nodes 2; a larger lab: gpucourse deploy 2 --target aws --nodes 4"),
        ("slurm", "hosts", "gpucourse run 2.9 --nodes 2"),  # a cluster of somebody else's does not grow
        ("torchrun", "local", "gpucourse run 2.9 --launcher slurm --nodes 2; a larger lab: gpucourse deploy 2 --nodes 4"),
    ],
)
def test_choose_nodes_refuses_more_than_there_are_with_the_command_that_works(kind: str, mode: Mode, hint: str) -> None:
    with pytest.raises(UsageError, match="4 nodes were requested, but the partition gpu has 2 nodes with 1 GPU each") as caught:
        enough(request(kind), partition(node("a"), node("b")), 4, mode=mode)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("processes", "gpus", "message"),
    [
        (8, 1, "1 node was requested, but the partition gpu has 0 nodes with 1 GPU each and 8 cores each"),
        (None, 2, "1 node was requested, but the partition gpu has 0 nodes with 2 GPU each"),
    ],
)
def test_choose_nodes_refuses_more_than_a_node_has(processes: int | None, gpus: int, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        enough(replace(request(gpus=gpus), processes=processes), partition(node("a")), 1, gpus=gpus)
    assert "sinfo -N -o '%N %c %G'" in caught.value.hint


def test_choose_nodes_names_those_that_are_down_or_drained_with_their_reason() -> None:
    queue = partition(
        node("a"), node("b", state="down*", reason="Not responding"), node("c", state="drained", reason="bad fan")
    )
    with pytest.raises(MissingError, match=r"b is down\* \(Not responding\); c is drained \(bad fan\)") as caught:
        enough(request(), queue, 2)
    assert "scontrol update nodename=b state=resume" in caught.value.hint
    assert enough(request(), queue, 1) == [
        "b is down* (Not responding); the others are enough", "c is drained (bad fan); the others are enough",
    ]  # fmt: skip


def test_choose_gpus_of_a_cluster_without_any_is_none_and_says_so() -> None:
    queue = partition(node("a", gpus=0))
    assert slurm.choose_gpus(request(), queue, 1) == 0
    assert "has a GPU that Slurm knows of" in enough(request(), queue, 1, gpus=0)[0]


def make_record(*rows: JobRow, script: str | None = None) -> RunRecord:
    return RunRecord(
        id="r", exercise="2.1", module="2", stack="02-local", mode="local", launcher="slurm", state="succeeded", created="now",
        nodes=["node0"], own_script=script, slurm=SlurmRun(partition="gpu", nodes=1, gpus=1, jobs=list(rows)),
    )  # fmt: skip


def test_add_metrics_joins_the_values_of_a_job_to_its_row(tmp_path: Path) -> None:
    files = RunPaths(tmp_path)
    folder = files.node_outputs("node0")
    folder.mkdir(parents=True)
    (folder / "job-7.json").write_text(json.dumps({"gpus_given": 1, "state": "a lie"}))
    (folder / "queue.json").write_text(json.dumps({"queue": [{"job": "8", "state": "PENDING", "reason": "Resources"}]}))
    rows = (
        JobRow(row=0, job="7", file="job", state="COMPLETED", node="node1", code=0),
        JobRow(row=1, job="8", file="job", state="CANCELLED", asked=True),
    )
    values = (slurm.add_metrics({"mine": 1}, make_record(*rows), files) or {})["slurm"]
    assert (values["jobs"][0]["gpus_given"], values["jobs"][0]["state"]) == (1, "COMPLETED")  # Slurm's word counts
    assert [job["job"] for job in values["started_jobs"]] == ["7"]
    assert (values["waiting"], values["waiting_with_reason"], values["cancelled_on_purpose"]) == (1, 1, 1)


def test_add_metrics_counts_jobs_at_once_and_output_files(tmp_path: Path) -> None:
    files = RunPaths(tmp_path)
    files.logs.mkdir()
    for name in ("node1-rank0.log", "node2-rank1.log", "node0-launcher.log"):
        (files.logs / name).touch()
    spans = [("10", "20"), ("12", "14"), ("14", "16"), ("15", "15"), ("20", "30")]
    rows = [
        JobRow(row=place, job=str(place), file="my_array", state="COMPLETED", node="node[1-2]", started=start, ended=end)
        for place, (start, end) in enumerate(spans)
    ]
    gather_row = JobRow(row=9, job="9", file="gather", state="COMPLETED", node="node1", started="12", ended="13")
    values = (slurm.add_metrics(None, make_record(*rows, gather_row), files) or {})["slurm"]
    assert (values["most_at_once"], values["output_files"]) == (2, 2)
    assert values["started_jobs"][0]["nodes"] == 2
    short = JobRow(row=0, job="1", file="job", state="COMPLETED", node="node1", started="10", ended="10")
    assert (slurm.add_metrics(None, make_record(short), files) or {})["slurm"]["most_at_once"] == 1


@pytest.mark.parametrize(("state", "ending"), [("COMPLETED", "exited"), ("FAILED", "exited"), ("NEW_STATE", "lost")])
def test_ending_of_a_session_ignores_the_code_of_its_last_command(state: str, ending: str) -> None:
    assert slurm.ending_of(JobRow(row=0, job="7", file="", state=state, code=3)) == ending


SITE = cluster(
    partition(node("c1", gpus=0), name="cpu"),
    Partition(
        name="gpu-short",
        default=False,
        open=True,
        max_s=1800,
        nodes=[ComputeNode(name="g[1-4]", state="idle", gpus=4, cores=64, count=4, gpu_types=["a100"])],
    ),
)
FACTS = SlurmFacts(
    partitions=[
        PartitionFacts(name="cpu", default=True, nodes=1, cores=4),
        PartitionFacts(name="gpu-short", max_s=1800.0, nodes=4, gpu_nodes=4, gpus=4, cores=64, gpu_types={"a100": 4}),
    ]
)


def university(**values: object) -> SlurmDeployment:
    deployment = lab("slurm", facts=FACTS, **values)
    assert isinstance(deployment, SlurmDeployment)
    return deployment


def test_job_on_a_cluster_goes_to_the_partition_with_gpus_unless_one_is_named() -> None:
    usual, torchrun = request(partition="gpu"), replace(request("torchrun"), launcher="torchrun")
    text = "#!/bin/bash\n#SBATCH --partition={}\n#SBATCH --gres=gpu:1\n"
    absent = replace(usual, written_batch=WrittenBatch(name="my_job", text=text.format("gpu")))
    own_request = replace(usual, written_batch=WrittenBatch(name="my_job", text=text.format("cpu")))
    requests = (usual, torchrun, absent, own_request)
    assert [choose(item, SITE, university()).name for item in requests] == ["gpu-short"] * 3 + ["cpu"]
    assert {choose(item, SITE, university(), partition="cpu").name for item in requests} == {"cpu"}
    typed = replace(usual, typed=frozenset({"partition"}), parameters={"partition": "cpu"})
    assert choose(typed, SITE, university(), partition="gpu-short").name == "cpu"
    with pytest.raises(MissingError, match="no partition 'long'; it has: cpu, gpu-short") as caught:
        choose(usual, SITE, university(), partition="long")
    assert caught.value.hint == "gpucourse run 2.9 --slurm partition=gpu-short"


def test_type_of_gpu_that_the_partition_lacks_is_refused() -> None:
    queue = partition(replace(node("g1"), gpu_types=["a100"]), name="gpu")
    slurm._check_gpu_type(queue, SlurmSettings(gpu="a100"), TYPED)
    with pytest.raises(MissingError, match="gpu has no GPU of the type h100; it has: a100") as caught:
        slurm._check_gpu_type(queue, SlurmSettings(gpu="h100"), TYPED)
    assert caught.value.hint == "gpucourse run 2.9 --slurm gpu=a100"


def test_time_limit_is_cut_to_that_of_the_partition_unless_a_longer_one_was_typed() -> None:
    messages: list[Event] = []
    queue = SITE.partitions[1]
    long = replace(request(), timeout_s=3600)
    assert slurm._limit_time(messages.append, replace(long, timeout_s=600), queue, university(), TYPED).timeout_s == 600
    assert not messages
    limited = slurm._limit_time(messages.append, long, queue, university(), TYPED)
    assert (limited.timeout_s, limited.typed) == (1800, frozenset())
    assert "allows jobs of at most 30 min, so the time limit is not 60 min" in str(messages[0])
    own_text = "#!/bin/bash\n#SBATCH --time=02:00:00\n"
    own_request = replace(long, written_batch=WrittenBatch(name="my_job", text=own_text))
    limited = slurm._limit_time(messages.append, own_request, queue, university(), TYPED)
    assert limited.typed == {"timeout"}, "it overrides the line of the file"
    with pytest.raises(MissingError, match="and --timeout asks for 60 min") as caught:
        slurm._limit_time(messages.append, replace(long, typed=frozenset({"timeout"})), queue, university(), TYPED)
    assert caught.value.hint == "gpucourse run 2.9 --timeout 30m"


@pytest.mark.parametrize(("run_nodes", "script", "count"), [(None, None, None), (1, None, 1), (8, None, 2), (8, "own.py", 1)])
def test_choose_count_is_that_of_the_exercise_as_far_as_the_lab_allows(
    context: Context, run_nodes: int | None, script: str | None, count: int | None
) -> None:
    run = resolve(context, RunRequest(exercise="3.2"))
    request = make_launch_request(context, run, local=False)
    if script is not None:
        run = replace(run, request=replace(run.request, script=Path(script)))
    assert slurm._choose_count(request, run, university(run_nodes=run_nodes)) == count


def test_site_has_the_options_and_the_python_of_the_settings() -> None:
    queue = SITE.partitions[1]
    settings = SlurmSettings(account="abc", gpu="a100", options={"constraint": "ib"}, setup=("module load x",))
    probe = ProbeFacts(state="passed", python="/opt/sw/my venv/bin/python")
    site = slurm._make_site(request("torchrun"), university(probe=probe), settings, queue, 2)
    assert site.flags == ("--comment=gpucourse-u", "--account=abc", "--gres=gpu:a100:2", "--constraint=ib")
    assert site.cpu_flags == ("--comment=gpucourse-u", "--partition=cpu", "--account=abc", "--constraint=ib")
    assert (site.python, site.cores, site.requests_gpus) == ("'/opt/sw/my venv/bin/python'", 8, True)
    absent = replace(request(), written_batch=WrittenBatch(name="my_job", text="#!/bin/bash\n#SBATCH -p gpu\n"))
    python_site = slurm._make_site(absent, university(), replace(settings, cpus_per_gpu=4, python="python"), queue, 1)
    assert python_site.flags == ("--comment=gpucourse-u", "--partition=gpu-short", "--account=abc", "--constraint=ib")
    assert (python_site.python, python_site.cores, python_site.requests_gpus) == ("python", 0, False)
    assert slurm._make_site(request(), lab(), SlurmSettings(), queue, 1).flags == ()


def test_choose_gpus_is_that_of_the_type_or_that_of_the_options() -> None:
    torchrun, queue = replace(request("torchrun"), launcher="torchrun"), SITE.partitions[1]
    assert [choose_gpus(torchrun, queue, 2, SlurmSettings(gpu=gpu)) for gpu in ("", "a100", "h100")] == [4, 4, 0]
    assert choose_gpus(torchrun, queue, 2, SlurmSettings(options={"gpus": "4"})) == 2
    assert choose_gpus(torchrun, queue, 5, SlurmSettings()) == 4, "the check of the nodes refuses the fifth"
