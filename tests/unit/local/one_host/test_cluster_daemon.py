"""A daemon of a Slurm on one computer."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from gpucourse.local.machines.daemons import DaemonFailed
from gpucourse.local.one_host.cluster import Daemon


def test_ready_raises_with_the_last_words_of_a_daemon_that_ends(tmp_path: Path) -> None:
    daemon = Daemon("slurmctld", tmp_path / "output", lambda: False)
    daemon.start(["sh", "-c", "echo 'cannot read slurm.conf'; exit 1"], os.environ)
    with pytest.raises(DaemonFailed, match=r"slurmctld does not start: cannot read slurm\.conf"):
        asyncio.run(daemon.ready())
