"""The submissions to Slurm and their number; `test_sbatch` tests the text of the files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch import slurm
from gpucourse.launch.launcher import ClusterFacts, LaunchRequest, WrittenBatch, find_launcher
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Mode, Node
from gpucourse.model.plan import Batch, LaunchPlan


def head(mode: Mode = "local", python: str = "/opt/course/bin/python") -> Node:
    return Node(
        name="node0", role="head", address="203.0.113.1", port=22, private_address="10.0.0.1", user="me", gpus=0,
        instance_type="t3.medium", python=python, mode=mode,
    )  # fmt: skip


def request(launch: dict[str, object], arguments: tuple[str, ...] = (), **parameters: object) -> LaunchRequest:
    exercise = Exercise.model_validate(
        {
            "id": "2.9", "title": "A job", "goal": "run", "minutes": 10, "script": "work.py", "tasks": ["run it"],
            "hints": ["look"], "launch": {"procs_per_node": 1, "timeout": "10m", **launch},
        }
    )  # fmt: skip
    return LaunchRequest(
        exercise=exercise, launcher="slurm-pty" if launch["kind"] == "slurm-pty" else "slurm", script="work.py",
        parameters=parameters, arguments=arguments, uploads=(), timeout_s=600,
    )  # fmt: skip


def make_plan(
    launch_request: LaunchRequest, *, nodes: int = 1, mode: Mode = "local", gpus: int = 1, partition: str = "gpu"
) -> LaunchPlan:
    threads = 1 if mode == "local" else None
    facts = ClusterFacts(module="2", partition=partition, nodes=nodes, threads=threads, gpus=gpus)
    return find_launcher(launch_request.launcher).plan(launch_request, (head(mode),), facts)


def batch_of(plan: LaunchPlan) -> Batch:
    """Return the submission."""
    assert plan.batch is not None
    return plan.batch


def text_of(plan: LaunchPlan) -> str:
    """Return the first submitted file."""
    return batch_of(plan).files[0].text


ONE = make_plan(request({"kind": "slurm", "slurm": {"jobs": "jobs"}}, ("--size=512",), jobs=1))
SPREAD = make_plan(
    request({"kind": "slurm", "nodes": 2, "procs_per_node": "procs"}, ("--name=it's $HOME",), procs=2), nodes=2, mode="aws"
)
SWEEP = make_plan(
    request(
        {"kind": "slurm", "slurm": {"array": "values", "at_once": "at_once", "gather": "gather.py"}},
        ("--values=1,2,3",),
        values="1,2,3",
        at_once=2,
    ),
    partition="",
    gpus=0,
)
ELASTIC = make_plan(
    request({"kind": "torchrun", "nodes": 2, "procs_per_node": "procs", "restarts": "restarts"}, procs=2, restarts=3), nodes=2
)


def test_plan_says_what_is_submitted_and_how_often() -> None:
    five = make_plan(request({"kind": "slurm", "slurm": {"jobs": "jobs", "show_queue": True, "cancel_last": True}}, jobs=5))
    batch = batch_of(five)
    assert [(file.name, file.copies, file.tasks, file.after) for file in batch.files] == [("job", 5, 0, "")]
    assert (batch.show_queue, batch.cancel_last, five.world_size) == (True, True, 5)
    assert not batch_of(ONE).cancel_last
    assert [(file.name, file.rows, file.after) for file in batch_of(SWEEP).files] == [("array", 3, ""), ("gather", 1, "array")]
    assert SWEEP.world_size == 4
    assert "#SBATCH --array=0-2%2\n" in text_of(SWEEP)
    assert "python -u gather.py --values=1,2,3\n" in batch_of(SWEEP).files[1].text
    assert SPREAD.world_size == 4
    assert SPREAD.commands[0].argv == ("sbatch", "--parsable", "job.sbatch")


def test_plan_of_a_torchrun_exercise_has_one_process_a_gpu_under_srun() -> None:
    plan = make_plan(request({"kind": "torchrun", "procs_per_node": "gpu"}), nodes=2, gpus=4, mode="aws")
    assert (batch_of(plan).tasks, plan.world_size) == (4, 8)
    text = text_of(plan)
    assert "#SBATCH --ntasks-per-node=4" in text
    assert "#SBATCH --gres=gpu:4" in text
    assert "export GPUCOURSE_BACKEND=nccl" in text


def test_plan_with_restarts_has_one_torchrun_on_each_node() -> None:
    batch = batch_of(ELASTIC)
    assert (batch.tasks, batch.max_restarts, batch.spread, ELASTIC.max_restarts, ELASTIC.world_size) == (2, 3, True, 3, 4)
    single_batch = batch_of(make_plan(request({"kind": "torchrun", "restarts": 1})))
    assert single_batch.spread, "also one rank alone has a log of its own, for all its lives"
    plain_batch = batch_of(make_plan(request({"kind": "torchrun", "nodes": 2, "restarts": "restarts"}, restarts=0), nodes=2))
    assert "torch.distributed.run" not in plain_batch.files[0].text


@pytest.mark.parametrize(("procs", "backend"), [(1, "nccl"), (2, "gloo")])
def test_plan_with_more_processes_than_gpus_by_choice_computes_on_processors(procs: int, backend: str) -> None:
    """Plan two ranks for one GPU, which NCCL refuses."""
    plan = make_plan(request({"kind": "slurm", "nodes": 2, "procs_per_node": "procs"}, procs=procs), nodes=2, mode="aws")
    assert f"export GPUCOURSE_BACKEND={backend}" in text_of(plan)


def test_plan_tells_nccl_its_sockets_and_the_interface_between_the_machines() -> None:
    launch_request = replace(request({"kind": "torchrun", "procs_per_node": "gpu"}), nccl={"NCCL_NET": "Socket"})
    plan = make_plan(launch_request, nodes=2, gpus=1, mode="aws")
    text = text_of(plan)
    assert "export NCCL_NET=Socket" in text
    assert 'export NCCL_SOCKET_IFNAME="${own:-$way}" GLOO_SOCKET_IFNAME="${own:-$way}"' in text
    simulated = make_plan(launch_request, nodes=2, gpus=0)
    assert "NCCL_NET" not in text_of(simulated), "gloo has no use for it"


@pytest.mark.parametrize("values", ["", ",", "1,,2", " ", ",".join("1" * 65)])
def test_plan_refuses_values_that_are_no_list(values: str) -> None:
    with pytest.raises(UsageError, match="--set values="):
        make_plan(request({"kind": "slurm", "slurm": {"array": "values"}}, values=values))


@pytest.mark.parametrize(("at_once", "array"), [(0, "0-3"), (2, "0-3%2"), (4, "0-3"), (9, "0-3")])
def test_plan_throttles_an_array_only_if_that_has_an_effect(at_once: int, array: str) -> None:
    plan = make_plan(
        request({"kind": "slurm", "slurm": {"array": "values", "at_once": "at_once"}}, values="1,2,3,4", at_once=at_once)
    )
    assert f"#SBATCH --array={array}\n" in text_of(plan)


def test_nodes_of_refuses_too_many_with_the_command_that_works() -> None:
    launch_request = request({"kind": "slurm", "nodes": 2, "min_nodes": 2, "max_nodes": 3})
    assert slurm.nodes_of(launch_request, None) == 2
    with pytest.raises(UsageError, match="2 to 3 nodes, not on 4") as caught:
        slurm.nodes_of(launch_request, 4)
    assert caught.value.hint == "gpucourse run 2.9 --nodes 3"


def test_partition_of_is_the_one_that_was_named() -> None:
    launch: dict[str, object] = {"kind": "slurm", "slurm": {"partition": "queue"}}
    assert slurm.partition_of(request({"kind": "slurm"})) == ""
    usual = request(launch, queue="a100")
    own_request = replace(usual, written_batch=WrittenBatch(name="my_job", text="#!/bin/bash\n#SBATCH -p short\ntrue\n"))
    assert slurm.partition_of(usual) == "a100"
    assert slurm.partition_of(own_request) == "short"
    assert slurm.partition_of(own_request, "long") == slurm.partition_of(usual, "long") == "long", "sbatch reads it last"
    assert slurm.partition_of(replace(own_request, typed=frozenset({"queue"})), "long") == "a100"
    bare = replace(own_request, written_batch=WrittenBatch(name="my_job", text="#!/bin/bash\ntrue\n"))
    assert slurm.partition_of(bare) == "", "the cluster's default, whatever the course prefers"


def test_plan_has_typed_values_after_sbatch_where_they_overrule_its_variables() -> None:
    launch_request = request({"kind": "slurm", "slurm": {"partition": "queue"}}, queue="gpu")
    plan = make_plan(replace(launch_request, typed=frozenset({"queue", "timeout", "nodes"})))
    assert plan.commands[0].argv == ("sbatch", "--parsable", "--time=00:10:00", "--partition=gpu", "job.sbatch")


def test_plan_of_a_script_of_the_learner_has_no_gather_job() -> None:
    launch_request = request({"kind": "slurm", "slurm": {"array": "values", "gather": "gather.py"}})
    own_request = LaunchRequest(
        exercise=launch_request.exercise,
        launcher="slurm",
        script="mine.py",
        parameters={},
        arguments=(),
        uploads=(),
        timeout_s=60,
    )
    plan = make_plan(own_request)
    assert [file.name for file in batch_of(plan).files] == ["job"]


def test_plan_of_a_job_has_the_python_of_the_nodes() -> None:
    facts = ClusterFacts(module="2", partition="gpu", nodes=1, threads=None, gpus=1, python="/opt/pytorch/bin/python")
    plan = find_launcher("slurm").plan(request({"kind": "slurm"}), (head("aws"),), facts)
    assert "/opt/pytorch/bin/python -u work.py" in text_of(plan)
    assert plan.commands[0].node.python == head("aws").python


def test_plan_submits_a_file_of_the_learner_as_it_is() -> None:
    text = "#!/bin/bash\n#SBATCH --array=0-3%2\nsource ./setup.sh\n"
    launch: dict[str, object] = {
        "kind": "slurm",
        "slurm": {"partition": "partition", "array": "values", "at_once": "at_once", "gather": "gather.py"},
    }
    launch_request = replace(
        request(launch, ("--values=1,2,3",), values="1,2,3", at_once=3, partition="gpu"),
        written_batch=WrittenBatch(name="my_array", text=text, tasks=4),
        typed=frozenset({"at_once", "timeout"}),
    )
    plan = make_plan(launch_request)
    batch = batch_of(plan)
    first, gather = batch.files
    assert (first.name, first.text, first.tasks, first.arguments) == ("my_array", text, 4, ("--values=1,2,3",))
    assert first.flags == ("--time=00:10:00", "--array=0-3%3")  # what was typed, and nothing else
    assert gather.after == "my_array"
    assert plan.commands[0].argv[-2:] == ("my_array.sbatch", "--values=1,2,3")
    assert batch_of(make_plan(replace(launch_request, written_batch=None))) != batch
    assert not batch_of(ONE).setup


def test_tasks_of_an_exercise_of_one_process_is_one_on_a_node_with_many_gpus() -> None:
    """Ignore `--procs`, which is only for torchrun, as with the exercise's own launcher."""
    single_request = request({"kind": "python", "procs_per_node": "gpu"})
    assert [slurm.tasks_of(replace(single_request, processes=procs), 8) for procs in (None, 4)] == [1, 1]
    plan = make_plan(single_request, gpus=1)
    assert (batch_of(plan).tasks, plan.world_size, batch_of(plan).spread) == (1, 1, False)
    assert "srun" not in text_of(plan).splitlines()[-1]


def test_plan_sets_no_variable_that_is_handed_on() -> None:
    names = ("OMP_NUM_THREADS", "NCCL_SOCKET_IFNAME", "NCCL_NSOCKS_PERTHREAD")
    launch_request = request({"kind": "slurm", "nodes": 2, "procs_per_node": 2}, ())
    launch_request = replace(launch_request, nccl={"NCCL_NSOCKS_PERTHREAD": "4"})
    for handed_on, count in (((), 3), (names, 0)):
        batch = make_plan(replace(launch_request, handed_on=handed_on), nodes=2, mode="aws", gpus=2).batch
        assert batch is not None
        text = batch.files[0].text
        assert sum(text.count(f"export {name}=") for name in names) == count
