"""The launchers `mpi` and `accelerate`, which need only one file and one line each. Commands and manifests contain no
launcher's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpucourse.course.schema import schema
from gpucourse.launch.accelerate import Accelerate
from gpucourse.launch.launcher import find_launcher
from gpucourse.launch.mpi import Mpi
from gpucourse.model.launchers import LAUNCHERS
from gpucourse.model.launching import Launch
from tests.unit.cli.conftest import Answer, type_line, workspace

__all__ = ["type_line", "workspace"]  # the fixtures

pytestmark = pytest.mark.system

HELLO = "from mpi4py import MPI\nprint(MPI.COMM_WORLD.rank)\n"


@pytest.fixture
def type_launcher(type_line: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Answer]]:
    """Yield a function that types words, on nodes that need neither mpi4py nor accelerate for a dry run."""
    for launcher in (Mpi, Accelerate):
        monkeypatch.setattr(launcher, "packages", ())
    yield type_line
    assert type_line("destroy", "--all", "--discard").code == 0


def test_launcher_of_one_file_plans_its_own_command(type_launcher: Callable[..., Answer], tmp_path: Path) -> None:
    (script := tmp_path / "hello_mpi.py").write_text(HELLO)
    assert type_launcher("deploy", "3", "--nodes", "2").code == 0
    words = ("run", "--script", str(script), "--procs", "2", "--dry-run", "--launcher")
    mpi, accelerate = (type_launcher(*words, name) for name in ("mpi", "accelerate"))
    assert mpi.code == accelerate.code == 0, mpi.err + accelerate.err
    assert "launcher mpi ranks 4 on 2 nodes" in mpi.out
    assert "mpirun -np 4 --host " in mpi.out
    assert mpi.out.count(":2,") == 1
    answer = type_launcher("run", "--script", str(script), "--launcher", "mpi")
    assert "not all of its outputs are collected" not in answer.err, "mpirun starts on the first node only"
    assert "launcher accelerate ranks 4 on 2 nodes" in accelerate.out
    assert "-m accelerate.commands.launch --num_machines=2 --machine_rank=1 --num_processes=4" in accelerate.out


def test_registry_decides_which_launchers_can_be_named(
    type_line: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = type_line("run", "3.1", "--launcher", "moon")
    assert (refusal.code, "'moon' is not one of 'python', 'torchrun', 'mpi'" in refusal.err) == (2, True)
    with pytest.raises(ValueError, match="Input should be 'python', 'torchrun', 'mpi'"):
        Launch(kind="moon")
    monkeypatch.setitem(LAUNCHERS, "moon", "gpucourse.launch.mpi:Mpi")
    assert Launch(kind="moon").traits.starts_ranks
    assert "'moon'" in type_line("run", "3.1", "--launcher", "sun").err
    assert schema()["$defs"]["Launch"]["properties"]["kind"]["enum"] == [*LAUNCHERS]
    del LAUNCHERS["moon"]
    assert {name: find_launcher(name).name for name in LAUNCHERS} == {name: name for name in LAUNCHERS}
