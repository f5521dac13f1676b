"""The batch file that the learner wrote: open, wrong or right, and when the course's own is submitted all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.course.locate import find_course
from gpucourse.errors import CheckFailed
from gpucourse.launch import slurm_plan
from gpucourse.launch.planning import WrittenBatch
from gpucourse.model.event import Event
from gpucourse.remote.slurm_client import ComputeNode, Partition
from gpucourse.runs.parts import list_part_files
from gpucourse.runs.prepare import RunRequest, make_launch_request
from gpucourse.runs.slurm_planning import choose_gpus, find_written_batch
from gpucourse.workspace.locate import open_workspace

SOLUTIONS = Path(__file__).parent.parent.parent.parent / "exercises" / "02-slurm" / "solutions"


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def context(tmp_path: Path, events: list[Event]) -> Iterator[Context]:
    context = Context(workspace=open_workspace(tmp_path / "work"), folders=find_course({}), environ={}, watch=events.append)
    yield context
    context.close()


def find(context: Context, exercise_id: str, text: str | None = None, **typed: object) -> WrittenBatch | None:
    exercise = context.catalog.exercise(exercise_id)[1]
    (file,) = list_part_files(context, exercise).values()
    if text is not None:
        file.write_text(text)
    return find_written_batch(context, exercise, RunRequest(exercise=exercise_id, **typed))  # type: ignore[arg-type]


def test_a_file_as_it_is_delivered_leaves_the_course_its_own(context: Context) -> None:
    assert find(context, "2.1") is None
    assert find(context, "2.2") is None  # a part, but none to submit


@pytest.mark.parametrize(
    ("exercise", "name", "tasks"), [("2.1", "my_job", 0), ("2.3", "my_multi_node", 0), ("2.4", "my_array", 4)]
)
def test_a_file_that_is_right_is_taken_as_it_is(context: Context, exercise: str, name: str, tasks: int) -> None:
    text = (SOLUTIONS / f"{name}.sbatch").read_text()
    assert find(context, exercise, text) == WrittenBatch(name=name, text=text, tasks=tasks)


def test_a_file_that_is_wrong_is_refused_with_the_reason(context: Context) -> None:
    text = (SOLUTIONS / "my_job.sbatch").read_text().replace("#SBATCH --gres=gpu:1\n", "")
    with pytest.raises(CheckFailed, match=r"my_job\.sbatch was not submitted: your file asks for no GPU"):
        find(context, "2.1", text)
    assert find(context, "2.1", text, script=Path("mine.py")) is None
    assert find(context, "2.1", text, launcher="torchrun") is None


@pytest.mark.parametrize(
    ("exercise", "procs", "nodes", "gpus", "tasks"),
    [
        ("1.1", None, 1, 1, 1), ("5.1", None, 1, 1, 1), ("6.1", None, 1, 1, 1), ("7.1", None, 1, 1, 1), ("5.1", 4, 1, 1, 1),
        ("3.2", None, 1, 4, 4), ("3.2", 1, 1, 1, 1), ("3.2", 3, 1, 3, 3), ("3.2", 6, 1, 4, 6), ("3.2", None, 2, 2, 2),
        ("3.2", 1, 2, 1, 1), ("2.1", None, 1, 1, 1),
    ],
)  # fmt: skip
def test_a_job_gets_a_gpu_for_each_of_its_processes_and_no_more(
    context: Context, exercise: str, procs: int | None, nodes: int, gpus: int, tasks: int
) -> None:
    module, manifest = context.catalog.exercise(exercise)
    launch_request = make_launch_request(
        context, module, manifest, RunRequest(exercise=exercise, launcher="slurm", processes=procs), local=False
    )
    counts = (4, 2, 0)
    machines = (ComputeNode(name=f"n{count}", state="idle", gpus=count, cores=16, reason="") for count in counts)
    partition = Partition(name="gpu", default=True, open=True, nodes=tuple(machines))
    assert choose_gpus(launch_request, partition, nodes) == gpus
    assert slurm_plan.tasks_of(launch_request, gpus) == tasks


def test_values_that_are_typed_take_the_course_file(context: Context, events: list[Event]) -> None:
    text = (SOLUTIONS / "my_array.sbatch").read_text()
    assert find(context, "2.4", text, settings={"values": "16,32"}) is None
    assert "the course's own file is submitted" in str(events[-1])
