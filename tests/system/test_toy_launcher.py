"""A launcher takes one file and its line in the registry: commands and manifests know no launcher by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpucourse.course.schema import schema
from gpucourse.launch.launcher import find_launcher
from gpucourse.model.launchers import LAUNCHERS
from gpucourse.model.launching import Launch
from tests.toy_launcher import Mpi
from tests.unit.cli.conftest import Answer, type_line, workspace

__all__ = ["type_line", "workspace"]  # the fixtures

pytestmark = pytest.mark.system

HELLO = "from mpi4py import MPI\nprint(MPI.COMM_WORLD.rank)\n"


@pytest.fixture
def type_mpi(type_line: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Answer]]:
    """Type words to a program with one more line in its registry, on nodes that need no mpi4py for a dry run."""
    monkeypatch.setitem(LAUNCHERS, "mpi", "tests.toy_launcher:Mpi")
    monkeypatch.setattr(Mpi, "packages", ())
    yield type_line
    assert type_line("destroy", "--all", "--discard").code == 0


def test_launcher_of_one_file_plans_mpirun_with_a_host_file(type_mpi: Callable[..., Answer], tmp_path: Path) -> None:
    (script := tmp_path / "hello_mpi.py").write_text(HELLO)
    assert type_mpi("deploy", "3", "--nodes", "2").code == 0
    result = type_mpi("run", "--script", str(script), "--launcher", "mpi", "--procs", "2", "--dry-run")
    assert result.code == 0, result.err
    assert "launcher mpi ranks 4 on 1 node" in result.out
    assert "slots=2" in result.out
    assert "> hosts && exec mpirun --hostfile hosts -np 4" in result.out
    assert "hello_mpi.py" in result.out


def test_registry_decides_which_launchers_can_be_named(
    type_line: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = type_line("run", "3.1", "--launcher", "mpi")
    assert (refusal.code, "'mpi' is not one of 'python', 'torchrun', 'slurm'" in refusal.err) == (2, True)
    with pytest.raises(ValueError, match="Input should be 'python', 'torchrun', 'slurm' or 'slurm-pty'"):
        Launch(kind="mpi")
    monkeypatch.setitem(LAUNCHERS, "mpi", "tests.toy_launcher:Mpi")
    assert Launch(kind="mpi").traits.starts_ranks
    assert "'mpi'" in type_line("run", "3.1", "--launcher", "moon").err
    assert schema()["$defs"]["Launch"]["properties"]["kind"]["enum"] == [*LAUNCHERS]
    assert {name: find_launcher(name).name for name in LAUNCHERS} == {name: name for name in LAUNCHERS}
