"""A daemon of a Slurm on one computer."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from gpucourse.local.machines.daemons import Dead
from gpucourse.local.one_host.daemon import Daemon, PortTaken


@pytest.mark.parametrize(("said", "kind"), [("bind: Address already in use", PortTaken), ("cannot read slurm.conf", Dead)])
def test_ready_tells_a_taken_port_from_another_fault(tmp_path: Path, said: str, kind: type[Dead]) -> None:
    daemon = Daemon("slurmctld", tmp_path / "said", lambda _pid: False)
    daemon.start(["sh", "-c", f"echo '{said}'; exit 1"], os.environ)
    with pytest.raises(Dead, match=said) as caught:
        asyncio.run(daemon.ready())
    assert type(caught.value) is kind
