"""A batch file of the learner's own: what it wishes for is read, what the learner typed overrules it, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch import own_batch
from gpucourse.launch.planning import LaunchRequest
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Node

HEAD = Node(
    name="node0", role="head", address="203.0.113.1", port=22, private_address="10.0.0.1", user="me", gpus=0,
    instance_type="t3.medium", python="/usr/bin/python3", mode="local",
)  # fmt: skip


def file(folder: Path, *wishes: str, name: str = "mine.sbatch") -> Path:
    path = folder / name
    path.write_text("\n".join(["#!/bin/bash", *(f"#SBATCH {wish}" for wish in wishes), "echo --nodes=64", ""]))
    return path


def request(*arguments: str, environment: dict[str, str] | None = None, handed_on: tuple[str, ...] = ()) -> LaunchRequest:
    exercise = Exercise.model_validate(
        {
            "id": "2.9", "title": "T", "goal": "g", "minutes": 1, "script": "s.py", "tasks": ["t"], "hints": ["h"],
            "launch": {"kind": "slurm"}, "parameters": [],
        }
    )  # fmt: skip
    return LaunchRequest(
        exercise=exercise, launcher="slurm", script="mine.sbatch", parameters={}, arguments=arguments, uploads=(),
        timeout_s=600, environment=environment or {}, handed_on=handed_on,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "batch"), [("job.sbatch", True), ("job.slurm", True), ("job.py", False), ("job.sh", False), ("sbatch", False)]
)
def test_it_is_known_by_its_name(name: str, batch: bool) -> None:
    assert own_batch.is_batch(Path(name)) is batch


@pytest.mark.parametrize(
    ("wishes", "nodes", "gpus", "partition"),
    [
        ((), 1, 0, ""),
        (("--nodes=3", "--gres=gpu:2", "--partition=long"), 3, 2, "long"),
        (("-N 2 -p short", "--gpus-per-node=a100:4"), 2, 4, "short"),
        (("--nodes 2 --gres gpu:t4:1",), 2, 1, ""),
    ],
)
def test_what_it_wishes_for(tmp_path: Path, wishes: tuple[str, ...], nodes: int, gpus: int, partition: str) -> None:
    own = own_batch.read(file(tmp_path, *wishes))
    assert (own.nodes, own.gpus, own.partition) == (nodes, gpus, partition)


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        ("--error=err.txt", "err.txt"),
        ("--error err-%j.txt", "err-%j.txt"),
        ("-e e.log", "e.log"),
        ("-ee.log -N 2", "e.log"),
        ('--error="with blank.txt"', "with blank.txt"),
        ("--nodes=2 -e 'e %x.log' --exclusive", "e %x.log"),
        ("--export=ALL --exclusive --output=o.txt --error-like=x", ""),
    ],
)
def test_where_standard_error_goes(tmp_path: Path, wish: str, error: str) -> None:
    own = own_batch.read(file(tmp_path, wish))
    assert own.error == error
    plan = own_batch.plan(request(), HEAD, own, nodes=None, partition="", default="gpu", time_s=None, module="2")
    assert plan.batch is not None
    assert plan.batch.files[0].error == error


@pytest.mark.parametrize("wish", ["--array=0-3", "-a 0-3", "--array 1,2"])
def test_an_array_is_refused_with_the_exercise_that_makes_one(tmp_path: Path, wish: str) -> None:
    with pytest.raises(UsageError, match="is an array") as caught:
        own_batch.read(file(tmp_path, wish))
    assert "gpucourse run 2.4" in caught.value.hint


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    (tmp_path / "mine.sbatch").write_bytes(b"\xff\xfe")
    for name in ("none.sbatch", "mine.sbatch"):
        with pytest.raises(UsageError, match=name):
            own_batch.read(tmp_path / name)


def test_the_file_goes_as_it_is_and_what_was_typed_overrules_it(tmp_path: Path) -> None:
    own = own_batch.read(file(tmp_path, "--nodes=2", "--gres=gpu:1"))
    plan = own_batch.plan(request("a", "b"), HEAD, own, nodes=3, partition="long", default="gpu", time_s=300.0, module="2")
    assert plan.batch is not None
    assert plan.batch.files[0].text == (tmp_path / "mine.sbatch").read_text()
    typed = ("--nodes=3", "--partition=long", "--time=00:05:00", *own_batch.FOLLOWED)
    assert plan.commands[0].argv == ("sbatch", "--parsable", *typed, "job.sbatch", "a", "b")
    assert (plan.batch.nodes, plan.batch.gpus, plan.batch.partition) == (3, 1, "long")
    plan = own_batch.plan(request(), HEAD, own, nodes=None, partition="", default="gpu", time_s=None, module="2")
    assert plan.commands[0].argv == ("sbatch", "--parsable", *own_batch.FOLLOWED, "job.sbatch")
    assert plan.batch is not None
    assert (plan.batch.nodes, plan.batch.partition) == (2, "gpu")


@pytest.mark.parametrize(
    ("wishes", "export"),
    [
        ((), None),
        (("--export=ALL",), None),
        (("--export=NONE",), "--export=MINE,TOKEN"),
        (("--export=PATH,HOME",), "--export=PATH,HOME,MINE,TOKEN"),
    ],
)
def test_what_was_typed_reaches_a_job_that_takes_little_of_its_environment(
    tmp_path: Path, wishes: tuple[str, ...], export: str | None
) -> None:
    own = own_batch.read(file(tmp_path, *wishes))
    wanted = request(environment={"MINE": "1"}, handed_on=("TOKEN",))
    plan = own_batch.plan(wanted, HEAD, own, nodes=None, partition="", default="", time_s=None, module="2")
    assert plan.commands[0].env == {"MINE": "1"}
    assert [word for word in plan.commands[0].argv if word.startswith("--export")] == ([export] if export else [])
