"""Folders that are closed to a plain user: every command reports that, and none reports a bug of gpucourse."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.system.cli import Learner
from tests.system.plain_user import words_of_a_plain_user

pytestmark = pytest.mark.system

IN_CLOSED = 'cd "$HOME/.." && mkdir -p closed/in && cd closed/in && chmod 0 .. && exec "$@"'


@pytest.fixture(scope="module")
def user() -> Iterator[Learner]:
    """Yield a learner who is not root, next to a closed folder."""
    folder = Path(tempfile.mkdtemp(prefix="plain-user-"))  # pytest's own folders are closed to others
    closed_folder = folder / "others"
    try:
        prefix = words_of_a_plain_user(folder, lent=False) if os.geteuid() == 0 else ()
        (closed_folder / "home").mkdir(parents=True)
        closed_folder.chmod(0)
        yield Learner(folder / "workspace", before=prefix)
    finally:
        for path in (closed_folder, folder / "closed"):
            if path.exists():
                path.chmod(0o700)
        shutil.rmtree(folder)


def test_closed_home_is_named_and_not_used(user: Learner) -> None:
    home = user.workspace.parent / "others" / "home"
    result = user.types("next", code=3, HOME=str(home), GPUCOURSE_WORKSPACE="")
    assert f"HOME is {home}: your files cannot be kept there" in result.err


@pytest.mark.parametrize("line", ["status", "deploy 0 --yes"])
def test_closed_workspace_is_named_and_not_read(user: Learner, line: str) -> None:
    workspace = user.workspace.parent / "others" / "workspace"
    result = user.types(*line.split(), code=3, GPUCOURSE_WORKSPACE=str(workspace))
    assert f"{workspace} cannot be checked (Permission denied)" in result.err


def test_workspace_is_the_one_at_home_below_a_closed_folder(user: Learner) -> None:
    closed_user = replace(user, before=(*user.before, "sh", "-c", IN_CLOSED, "sh"))
    assert "Nothing is deployed." in closed_user.types("status", GPUCOURSE_WORKSPACE="").out
