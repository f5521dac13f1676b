"""Facts about the lab that a run is told before it is planned: the speed of its link, and that it has fewer nodes than
intended.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.launch.launcher import LaunchRequest, find_launcher
from gpucourse.launch.own_batch import read_kind
from gpucourse.model.deployment import LocalDeployment, LocalVariables
from gpucourse.model.event import Note
from gpucourse.model.node import Inventory, Mode, Node
from gpucourse.model.record import RunRecord, RunState
from gpucourse.ports import CommandResult
from gpucourse.runs.prepare import list_earlier_runs, make_launch_request, plan_on
from gpucourse.runs.resolve import RunRequest, resolve
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.paths import WorkspacePaths
from tests.course import CATALOG
from tests.unit.labs.aws import fakes

NOW = "2026-01-31T14:25:01+00:00"
LINK = {"GPUCOURSE_LINK_GBPS": "1", "GPUCOURSE_LINK_BURST_BYTES": "131072"}


def lab(context: Context, nodes: int, *, link: str = "", module: str = "3") -> None:
    """Record an existing lab."""
    stands = tuple(
        Node(name=f"node{n}", role="worker" if n else "head", mode="local", address="127.0.0.1", port=2200 + n,
             private_address="127.0.0.1", user="me", gpus=0, instance_type="simulated", python="python3")
        for n in range(nodes)
    )  # fmt: skip
    record = LocalDeployment(
        stack=f"0{module}-local", uid="u", module=module, template="simulated", phase="ready", created=NOW, updated=NOW,
        nodes_wanted=nodes, variables=LocalVariables(link=link), inventory=Inventory(stack=f"0{module}-local", nodes=stands),
    )  # fmt: skip
    deployments.save(context.paths, record)


def make_request(
    tmp_path: Path, exercise_id: str, nodes: int, *, link: str = "", number: int | None = None
) -> tuple[LaunchRequest, list[str]]:
    context, events = fakes.context_in(tmp_path)
    lab(context, nodes, link=link)
    run = resolve(context, RunRequest(exercise=exercise_id, nodes=number))
    launch_request = make_launch_request(context, run, local=True)
    return launch_request, [event.text for event in events if isinstance(event, Note)]


@pytest.mark.parametrize(("link", "environment"), [("", {}), ("1gbit", LINK), ("1gbit,2ms", LINK)])
def test_make_launch_request_tells_ranks_the_speed_of_the_link_of_the_lab(
    tmp_path: Path, link: str, environment: dict[str, str]
) -> None:
    assert make_request(tmp_path, "3.3", 2, link=link)[0].environment == environment


def test_make_launch_request_for_a_lab_with_too_few_nodes_names_the_command_for_more(tmp_path: Path) -> None:
    _, notes = make_request(tmp_path, "3.7", 2)
    assert notes == ["3.7 is meant for 4 nodes, but only 2 are deployed; to deploy more: gpucourse deploy 3 --nodes 4"]
    for nodes, number in ((4, None), (2, 2)):  # enough, or asked for
        assert make_request(tmp_path / str(nodes), "3.7", nodes, number=number)[1] == []


def test_make_launch_request_takes_a_script_that_is_named_like_a_flag_for_no_flag(context: Context, tmp_path: Path) -> None:
    (script := tmp_path / "-x.py").write_text("")
    launch_request = make_launch_request(context, resolve(context, RunRequest(exercise="3.1", script=script)), local=True)
    assert launch_request.script == "./-x.py"
    assert "-x.py" in {upload.name for upload in launch_request.uploads}


@pytest.mark.parametrize(
    ("mode", "needs", "message", "cure"),
    [
        (
            "local",
            {"programs": ("sh", "g++")},
            r"^g\+\+ is not installed on node0$",
            "on this computer: sudo apt-get install g++",
        ),
        ("aws", {"programs": ("sh", "g++")}, r"^g\+\+ is not installed on node0$", "on node0: sudo apt-get install g++"),
        (
            "aws",
            {"packages": ("json", "no_such_package")},
            r"^no_such_package is not installed on node0 \(for .*\)$",
            " -m pip install 'gpucourse[local]'",
        ),
    ],
)
def test_plan_on_names_a_program_or_package_that_a_node_lacks_before_the_start(
    context: Context, mode: Mode, needs: dict[str, tuple[str, ...]], message: str, cure: str
) -> None:
    lab(context, 1)
    launch_request = make_launch_request(context, resolve(context, RunRequest(exercise="3.1")), local=True)

    def answer(_node: Node, command: str) -> CommandResult:
        raise AssertionError(f"nothing but the look at the node was expected: {command}")

    fleet = fakes.fleet_of(answer, replace(fakes.node("node0"), mode=mode))
    with pytest.raises(MissingError, match=message) as error:
        plan_on(context, fleet, replace(launch_request, **needs), find_launcher("torchrun"))  # type: ignore[arg-type]
    assert error.value.hint.endswith(cure)


def test_make_launch_request_refuses_a_file_that_replaces_one_of_the_exercise(context: Context, tmp_path: Path) -> None:
    module, exercise = context.catalog.exercise("3.1")
    namesake = tmp_path / exercise.script
    namesake.write_text("print('numbers')\n")
    request = RunRequest(exercise="3.1", extra=(namesake,))
    with pytest.raises(UsageError, match="has a file of its own named"):
        make_launch_request(context, resolve(context, request), local=True)
    file = context.paths.exercises / context.catalog.folder_name(module) / exercise.script
    assert make_launch_request(context, resolve(context, RunRequest(exercise="3.1", extra=(file,))), local=True).uploads


@pytest.mark.parametrize(
    ("launcher", "nodes", "deployed", "is_announced"),
    [("python", None, 2, True), ("python", 2, 2, False), ("python", None, 1, False), ("torchrun", None, 2, False)],
)
def test_make_launch_request_announces_a_script_that_python_starts_on_each_node(
    tmp_path: Path, launcher: str, nodes: int | None, deployed: int, is_announced: bool
) -> None:
    context, events = fakes.context_in(tmp_path)
    lab(context, deployed)
    (tmp_path / "own.py").write_text("print(1)\n")
    request = RunRequest(exercise="3.1", script=tmp_path / "own.py", launcher=launcher, nodes=nodes)
    make_launch_request(context, resolve(context, request), local=True)
    message = "own.py is started 2 times, once on each node; --nodes 1 starts it once"
    assert (message in [event.text for event in events if isinstance(event, Note)]) is is_announced


def test_make_launch_request_starts_a_cuda_program_by_a_script_with_what_it_includes(context: Context, tmp_path: Path) -> None:
    lab(context, 1)
    program = tmp_path / "my.cu"
    program.write_text('#include "tile.h"\nint main() {}\n')
    (tmp_path / "tile.h").touch()
    run_request = RunRequest(
        exercise="3.1", script=program, kind=read_kind(program), launcher="python", arguments=("a",), settings={}
    )
    launch_request = make_launch_request(context, resolve(context, run_request), local=True)
    assert (launch_request.script, launch_request.arguments) == ("cuda_program.py", ("my.cu", "a"))
    assert launch_request.packages == ()
    names = {upload.name for upload in launch_request.uploads}
    assert names >= {"my.cu", "tile.h", "cuda_program.py", "emulator/__main__.py", "emulator/emulator.cpp"}


def test_make_launch_request_refuses_a_notebook_with_the_command_that_makes_a_script(context: Context, tmp_path: Path) -> None:
    notebook = tmp_path / "nb.ipynb"
    notebook.write_text('{"cells": []}')
    with pytest.raises(UsageError, match="a notebook is not a Python script") as caught:
        make_launch_request(context, resolve(context, RunRequest(exercise="3.1", script=notebook)), local=True)
    assert caught.value.hint == f"jupyter nbconvert --to script {notebook}, then gpucourse run --script {tmp_path / 'nb.py'}"


def write_run(
    paths: WorkspacePaths, number: int, *, device: str = "Tesla T4", model: str = "gpt2", state: RunState = "succeeded",
    verdict: str | None = "passed", text: str | None = None,
) -> str:  # fmt: skip
    name = f"20260101-0000{number:02}-otter"
    folder = paths.run("4.3", name)
    folder.folder.mkdir(parents=True)
    folder.metrics.write_text(text or json.dumps({"device": device, "model": model}), encoding="utf-8")
    record = RunRecord(
        id=name, exercise="4.3", module="4", stack="04-local", mode="local", launcher="python", state=state,
        created=f"2026-01-01T00:00:{number:02}+00:00", verdict=verdict,
    )  # fmt: skip
    runs.save(paths, record)
    return f"earlier-4.3-{name}.json"


def list_names(paths: WorkspacePaths) -> list[str]:
    return [upload.name for upload in list_earlier_runs(paths, CATALOG.exercise("4.4")[1])]


def test_list_earlier_runs_returns_the_newest_of_each_device_and_model(tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path)
    write_run(paths, 1)
    newest = write_run(paths, 2)
    other_model = write_run(paths, 3, model="opt-1.3b")
    other_device = write_run(paths, 4, device="NVIDIA L4")
    assert list_names(paths) == [other_device, other_model, newest]


def test_list_earlier_runs_leaves_out_a_failed_or_damaged_run(tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path)
    good_run = write_run(paths, 1, verdict="not_measured")
    write_run(paths, 2, verdict="failed")
    write_run(paths, 3, state="cancelled", verdict=None)
    write_run(paths, 4, text="{torn")
    write_run(paths, 5, text="[]")
    assert list_names(paths) == [good_run]
