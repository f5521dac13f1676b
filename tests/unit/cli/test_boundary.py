"""Errors about wrong arguments, a missing lab and a shell without completion: the message, the hint and the exit code."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.cli.boundary import _explain
from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.node import Inventory
from gpucourse.workspace import deployments
from gpucourse.workspace.locate import open_workspace
from tests.learning import Learning
from tests.unit.cli.conftest import Answer
from tests.unit.remote.test_keys import node

Type = Callable[..., Answer]


@pytest.mark.parametrize(
    ("line", "code", "reason", "hint"),
    [
        ("run 3.22", 2, "there is no exercise '3.22'. Did you mean 3.2", "known: "),
        ("run 3.2", 3, "the lab of module 3 is not deployed", "gpucourse deploy 3"),
        ("ssh 3", 3, "the lab of module 3 is not deployed", "gpucourse deploy 3"),
        ("show 3 --part 6", 2, "the lesson of module 3 has 5 parts, not 6", "gpucourse show 3"),
        ("show 3.1 --part 2", 2, "3.1 is an exercise; only a lesson has parts", "gpucourse show 3.1"),
        ("destroy", 2, "name one module, or all of them", "gpucourse destroy --all"),
        ("destroy 3 --all", 2, "name one module, or all of them", "gpucourse destroy --all"),
    ],
)
def test_run_command_refuses_wrong_arguments_with_what_to_type(
    type_line: Type, line: str, code: int, reason: str, hint: str
) -> None:
    answer = type_line(*line.split())
    assert answer.code == code
    assert reason in answer.err
    assert hint in answer.err.partition("→")[2]
    assert "Traceback" not in answer.err


@pytest.fixture
def recorded_lab(workspace: Path) -> None:
    """Record module 3's lab of two nodes, without building it."""
    nodes = tuple(replace(node(number), name=f"node{number}") for number in range(2))
    lab = LocalDeployment(
        stack="03-local", uid="u", module="3", template="simulated", phase="ready", created="2026-01-01T00:00:00+00:00",
        updated="", nodes_wanted=2, inventory=Inventory(stack="03-local", nodes=nodes),
    )  # fmt: skip
    deployments.save(open_workspace(workspace).paths, lab)


@pytest.mark.usefixtures("recorded_lab")
@pytest.mark.parametrize(
    ("line", "reason", "hint"),
    [
        ("run 3.2 --set batch_size=many", "many", "batch_size"),
        ("run --script nowhere.py", "there is no such file", "name a Python file"),
        ("ssh 3 --node 7", "there is no node '7'", "node0, node1"),
    ],
)
def test_run_command_refuses_wrong_arguments_about_a_lab(
    workspace: Path, type_line: Type, line: str, reason: str, hint: str
) -> None:
    answer = type_line(*line.split())
    assert answer.code == 2
    assert reason in answer.err
    assert hint in answer.err
    assert not (workspace / "runs").exists()


def test_run_command_with_json_prints_an_error_as_a_document(type_line: Type) -> None:
    answer = type_line("deploy", "33", "--json")
    document = json.loads(answer.out)
    assert (answer.code, document["version"]) == (2, 1)
    assert (document["error"]["code"], document["error"]["exit_code"]) == ("unknown_name", 2)


def test_explain_names_the_limit_of_open_files() -> None:
    error = _explain(OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    assert error is not None
    assert error.exit_code == 3
    assert "open files, the limit of this shell" in error.what
    assert error.hint == "ulimit -n 4096"


@pytest.mark.parametrize(("shell", "file"), [("/bin/bash", ".bashrc"), ("/usr/bin/zsh", ".zshrc")])
def test_run_command_installs_completion_for_the_shell_of_the_login(
    type_line: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shell: str, file: str
) -> None:
    monkeypatch.setenv("SHELL", shell)
    answer = type_line("--install-completion")
    assert f"Completion for {Path(shell).name} is installed in {tmp_path}/home" in answer.out
    assert (tmp_path / "home" / file).is_file()
    assert "_GPUCOURSE_COMPLETE" in type_line("--show-completion").out


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/tcsh", ""])
def test_run_command_for_completion_names_the_shells_that_it_supports(
    type_line: Type, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("SHELL", shell)
    answer = type_line("--install-completion")
    assert answer.code == 2
    assert "completion exists for bash, zsh, fish" in answer.err
    assert "gpucourse --install-completion bash" in answer.err


def test_run_command_for_completion_names_the_file_that_it_cannot_write(type_line: Type, tmp_path: Path) -> None:
    (tmp_path / "home/.bash_completions").touch()
    answer = type_line("--install-completion", "bash")
    assert answer.code == 3
    assert f"cannot write {tmp_path}/home/.bash_completions" in answer.err
    assert "gpucourse --show-completion" in answer.err


def test_run_command_names_a_bug_whose_traceback_is_in_the_log(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_context: object) -> None:
        raise LookupError("no such planet")

    monkeypatch.setattr("gpucourse.learning.list_.list_course", fail)
    result = learning.types("list", code=1)
    assert "a bug in gpucourse: LookupError: no such planet" in result.err
    log = learning.context.paths.log
    assert str(log) in result.err.replace("\n", "")
    assert "in fail\n" in log.read_text()
