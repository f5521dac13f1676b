"""The request for outputs, which lists the files that are already here."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import StorageError
from gpucourse.model.event import ignore_event
from gpucourse.remote.collect import collect
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.ssh import SshTransport
from gpucourse.workspace.paths import RunPaths
from tests.unit.remote.test_host_probe import HEAD


def test_collect_refuses_outputs_that_are_a_link(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "run")
    paths.outputs.mkdir(parents=True)
    tmp_path.joinpath("private").mkdir()
    paths.node_outputs("node0").symlink_to(tmp_path / "private")
    with pytest.raises(StorageError, match="is a link"):
        collect(Fleet(SshTransport(tmp_path / "no-key"), [HEAD]), "r1", (), paths, 1 << 20, ignore_event)
