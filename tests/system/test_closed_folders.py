"""Folders that are closed to a plain user: every command says so, and none calls it a bug of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.system.cli import Learner
from tests.system.plain_user import words_of_a_plain_user

pytestmark = pytest.mark.system

IN_CLOSED = 'mkdir -p closed/in && cd closed/in && chmod 0 .. && exec "$@"'
SHELLS_OWN = "gpucourse --show-completion"


@pytest.fixture
def somebody() -> Iterator[Learner]:
    """Somebody who is not root."""
    folder = Path(tempfile.mkdtemp(prefix="plain-user-"))  # pytest's own folders are closed to others
    try:
        yield Learner(folder / "workspace", before=words_of_a_plain_user(folder, lent=False))
    finally:
        shutil.rmtree(folder)


def test_a_closed_home_is_none(somebody: Learner) -> None:
    closed = somebody.workspace.parent / "others"
    (closed / "home").mkdir(parents=True)
    closed.chmod(0o700)
    for home in (closed, closed / "home"):
        for words in (("next",), ("--install-completion", "bash")):
            refused = somebody.types(*words, code=3, HOME=str(home), GPUCOURSE_WORKSPACE="")
            assert f"HOME is {home}: nothing of yours can be kept there" in refused.err
    assert list((closed / "home").iterdir()) == []


def test_a_closed_workspace_is_not_read(somebody: Learner) -> None:
    closed = somebody.workspace.parent / "others"
    closed.mkdir(mode=0o700)
    for words in (("status",), ("runs",), ("run", "0.1", "--dry-run"), ("deploy", "0", "--yes")):
        refused = somebody.types(*words, code=3, GPUCOURSE_WORKSPACE=str(closed / "workspace"))
        assert f"{closed / 'workspace'} cannot be checked (Permission denied)" in refused.err


def test_below_a_closed_folder_the_workspace_is_the_one_at_home(somebody: Learner) -> None:
    inside = replace(somebody, before=(*somebody.before, "sh", "-c", IN_CLOSED, "sh"))
    assert "Nothing is deployed." in inside.types("status", GPUCOURSE_WORKSPACE="").out


@pytest.mark.parametrize(("shell", "file"), [("/bin/bash", ".bashrc"), ("/usr/bin/zsh", ".zshrc")])
def test_completion_is_installed_for_the_shell_of_the_login(somebody: Learner, shell: str, file: str) -> None:
    """Started from a script's sh, which has no completion."""
    (home := somebody.workspace.parent / "my home").mkdir(mode=0o777)
    home.chmod(0o777)
    from_sh = replace(somebody, before=(*somebody.before, "sh", "-c", '"$@"; exit $?', "sh"))
    typed = from_sh.types("--install-completion", HOME=str(home), SHELL=shell)
    assert f"Completion for {Path(shell).name} is installed in {home}" in typed.out
    assert (home / file).is_file()
    assert "_GPUCOURSE_COMPLETE" in from_sh.types("--show-completion", HOME=str(home), SHELL=shell).out


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/tcsh", ""])
def test_completion_names_the_shells_that_it_supports(somebody: Learner, shell: str) -> None:
    refused = somebody.types("--install-completion", code=2, SHELL=shell)
    assert "there is completion for bash, zsh, fish" in refused.err
    assert "gpucourse --install-completion bash" in refused.err


def test_completion_names_what_it_may_not_write(somebody: Learner) -> None:
    (home := somebody.workspace.parent / "others").mkdir(mode=0o755)
    refused = somebody.types("--install-completion", "bash", code=3, HOME=str(home))
    assert f"cannot write {home}/.bash" in refused.err
    assert SHELLS_OWN in refused.err
