from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.model.slurm_settings import read_words
from gpucourse.runs.resolve import RunRequest, resolve
from tests.unit.runs.test_prepare import lab


def test_command_of_a_request_repeats_what_decides_what_the_nodes_are_asked_for(tmp_path: Path) -> None:
    request = RunRequest(
        exercise="3.2", script=tmp_path / "own.py", nodes=3, timeout_s=1800, settings={"size": "2"}, arguments=("-x", "a b"),
        slurm=read_words(["partition=gpu", "constraint=ib"]),
    )  # fmt: skip
    words = "--nodes 3 --timeout 30m --set size=2 --slurm partition=gpu --slurm constraint=ib -- -x 'a b'"
    assert request.command == f"gpucourse run --script {tmp_path}/own.py {words}"
    assert replace(request, script=None, arguments=()).command.startswith("gpucourse run 3.2 --nodes 3 ")


def test_resolve_of_a_script_takes_any_lab_and_first_that_of_module_3(context: Context, tmp_path: Path) -> None:

    def find(target: str | None = None) -> str:
        return resolve(context, RunRequest(exercise="3.1", script=tmp_path / "own.py", target=target)).lab.id

    assert find() == "3", "no lab is there: module 3's is asked for"
    lab(context, 1, module="0")
    assert find() == "0"
    assert find("aws") == "3"
    lab(context, 2)
    assert find() == "3"


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (RunRequest(exercise="3.2", nodes=0), "--nodes 0: at least one node is needed"),
        (RunRequest(exercise="3.2", settings={"foo": "3"}), "there is no parameter 'foo'"),
    ],
)
def test_resolve_refuses_a_value_before_it_asks_for_a_lab(context: Context, request_: RunRequest, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        resolve(context, request_)
