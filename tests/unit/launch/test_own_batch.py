"""A learner's own batch file: its requests are read, and only typed options override them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch import own_batch
from gpucourse.launch.launcher import LaunchRequest
from gpucourse.model.manifest import Exercise
from gpucourse.model.plan import Batch, LaunchPlan
from gpucourse.remote import slurm_client
from gpucourse.ui.views.slurm import describe_batch
from tests.unit.remote.test_slurm_refusals import HEAD

FOLLOWED = ("--chdir=.", "--output=../logs/%j-%N.out", "--open-mode=append")


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


def make_plan(batch: own_batch.OwnBatch) -> tuple[LaunchPlan, Batch]:
    """Return the plan for a file without typed options, and the submitted file."""
    plan = own_batch.plan(request(), HEAD, batch, nodes=None, partition="", default="gpu", time_s=None, module="2")
    assert plan.batch is not None
    return plan, plan.batch


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("job.sbatch", "#!/bin/bash\necho\n", "batch"),
        ("job.slurm", "echo\n", "batch"),  # sbatch says what is wrong with it
        ("train.sh", "#!/bin/bash\n# a training\n#SBATCH -N 2\nsrun python train.py\n", "batch"),
        ("train.py", "#!/usr/bin/env python3\n#SBATCH --nodes=2\nprint(1)\n", "batch"),
        ("train.py", '#!/usr/bin/env python3\nHEAD = """\n#SBATCH --nodes=2\n"""\n', "script"),
        ("train.py", "import torch\n", "script"),
        ("train.py", "#SBATCH -N 2\n", "script"),  # sbatch would want a first line with #!
        ("train", "#! /opt/conda/bin/python\nprint(1)\n", "script"),
        ("run.sh", "#!/bin/bash\n##SBATCH -N 2\ntorchrun train.py\n", "shell"),
        ("none.sh", None, "shell"),
    ],
)
def test_read_kind_knows_a_batch_file_by_its_content(tmp_path: Path, name: str, text: str | None, kind: str) -> None:
    script = tmp_path / name
    if text is not None:
        script.write_text(text)
    script_kind = own_batch.read_kind(script)
    assert (script_kind.is_batch, script_kind.is_shell) == (kind == "batch", kind == "shell")


def test_make_shell_script_error_names_both_ways(tmp_path: Path) -> None:
    error = own_batch.make_shell_script_error(tmp_path / "run.sh")
    assert "run.sh is a shell script without lines for sbatch" in error.what
    assert "--launcher slurm" in error.hint
    assert "the Python script that it starts" in error.hint


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        ("--error err-%j.txt", "err-%j.txt"),
        ("-ee.log -N 2", "e.log"),
        ('--error="with blank.txt"', "with blank.txt"),
        ("--nodes=2 -e 'e %x.log' --exclusive", "e %x.log"),
        ("--export=ALL --exclusive --output=o.txt --error-like=x", ""),
    ],
)
def test_read_finds_where_standard_error_goes(tmp_path: Path, wish: str, error: str) -> None:
    batch = own_batch.read(file(tmp_path, wish))
    assert batch.read_option("error") == error
    assert make_plan(batch)[1].files[0].error == error


@pytest.mark.parametrize("error", ["/scratch/me/e.txt", "../e.txt", "logs/%x.%j.out"])
def test_plan_joins_errors_that_cannot_be_collected_to_the_output(tmp_path: Path, error: str) -> None:
    """Plan error files in folders that do not exist here, or in the same file as the output."""
    batch_file = own_batch.read(file(tmp_path, "--output=logs/%x.%j.out", f"--error={error}"))
    plan, batch = make_plan(batch_file)
    assert batch.files[0].error == ""
    assert plan.commands[0].argv[-2:] == ("--error=../logs/%j-%N.out", "mine.sbatch")


@pytest.mark.parametrize(
    ("wish", "tasks", "at_once"),
    [
        ("--array=0-3", [0, 1, 2, 3], 0),
        ("-a 0-6:2%2", [0, 2, 4, 6], 2),
        ("--array=[1-3]%20", [1, 2, 3], 20),
        ("--array=what", [], 0),  # sbatch says what is wrong with it
    ],
)
def test_plan_of_an_array_has_a_row_and_a_log_for_each_task(tmp_path: Path, wish: str, tasks: list[int], at_once: int) -> None:
    batch_file = own_batch.read(file(tmp_path, wish))
    assert (list(batch_file.tasks), batch_file.at_once) == (tasks, at_once)
    plan, batch = make_plan(batch_file)
    assert (batch.files[0].rows, plan.world_size) == (len(tasks) or 1,) * 2
    assert f"--output=../logs/{'%A_%a' if tasks else '%j'}-%N.out" in plan.commands[0].argv
    assert list(slurm_client.spec(plan)["slurm"]["files"][0]["numbers"]) == tasks  # type: ignore[index]


def test_read_refuses_a_job_that_cannot_be_followed_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"an array of 10,001 tasks, but at most 10,000 can be followed"):
        own_batch.read(file(tmp_path, "--array=0-10000"))
    for word in ("hetjob", "packjob"):
        with pytest.raises(UsageError, match=rf"a heterogeneous job \(line 3: #SBATCH {word}\)") as caught:
            own_batch.read(file(tmp_path, "--nodes=1", word, "--nodes=2"))
        assert "sbatch there" in caught.value.hint


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ((), "1 node of the partition gpu, 1 process in all"),
        (("--ntasks=8",), "1 node of the partition gpu, 8 processes in all"),
        (("-N 2 --ntasks-per-node=4 --gres=gpu:4",), "2 nodes of the partition gpu, 8 processes in all, 4 GPUs on each node"),
        (
            ("--array=1-12%3", "-p long"),
            "an array of 12 tasks (3 at a time), each on 1 node of the partition long, 1 process in all",
        ),
    ],
)
def test_describe_batch_says_what_the_file_asks_for(tmp_path: Path, wishes: tuple[str, ...], message: str) -> None:
    batch = own_batch.read(file(tmp_path, *wishes))
    assert describe_batch(make_plan(batch)[1]) == message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "none"),
        (b"\xff\xfe", "mine"),
        (b"#!/bin/bash\n#SBATCH -N 2\n# caf\xe9\n", "line 3 is not text in UTF-8"),
    ],
)
def test_read_kind_refuses_a_file_that_is_no_text(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / ("none.sbatch" if content is None else "mine.sbatch")
    if content is not None:
        path.write_bytes(content)
        assert own_batch.read_kind(path).is_batch
    with pytest.raises(UsageError, match=words):
        own_batch.read(path)


def test_plan_submits_the_file_as_it_is_and_typed_options_overrule_it(tmp_path: Path) -> None:
    batch_file = own_batch.read(file(tmp_path, "--nodes=2", "--gres=gpu:1"))
    plan = own_batch.plan(
        request("a", "b"), HEAD, batch_file, nodes=3, partition="long", default="gpu", time_s=300.0, module="2"
    )
    assert plan.batch is not None
    assert plan.batch.files[0].text == (tmp_path / "mine.sbatch").read_text()
    options = ("--nodes=3", "--partition=long", "--time=00:05:00", *FOLLOWED)
    assert plan.commands[0].argv == ("sbatch", "--parsable", *options, "mine.sbatch", "a", "b")
    assert (plan.batch.nodes, plan.batch.gpus, plan.batch.partition) == (3, 1, "long")
    plan, batch = make_plan(batch_file)
    assert plan.commands[0].argv == ("sbatch", "--parsable", *FOLLOWED, "mine.sbatch")
    assert (batch.nodes, batch.partition) == (2, "gpu")


@pytest.mark.parametrize(
    ("wishes", "export"),
    [
        ((), None),
        (("--export=ALL",), None),
        (("--export=NONE",), "--export=MINE,TOKEN"),
        (("--export=PATH,HOME",), "--export=PATH,HOME,MINE,TOKEN"),
    ],
)
def test_plan_hands_typed_variables_to_a_job_that_takes_little_of_its_environment(
    tmp_path: Path, wishes: tuple[str, ...], export: str | None
) -> None:
    batch = own_batch.read(file(tmp_path, *wishes))
    launch_request = request(environment={"MINE": "1"}, handed_on=("TOKEN",))
    plan = own_batch.plan(launch_request, HEAD, batch, nodes=None, partition="", default="", time_s=None, module="2")
    assert plan.commands[0].env == {"MINE": "1"}
    assert [word for word in plan.commands[0].argv if word.startswith("--export")] == ([export] if export else [])
