from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from gpucourse.local import layout
from gpucourse.local.one_host.cluster import SlurmDaemons
from tests.unit.local.scripted_host import make_spec


def test_join_refuses_a_link_in_the_place_of_its_folder_for_sockets(tmp_path: Path) -> None:
    uid = f"{tmp_path.name}-{os.getpid()}"
    layout.sockets(uid).symlink_to(tmp_path)
    try:
        with pytest.raises(PermissionError, match="belongs to another user"):
            asyncio.run(SlurmDaemons(tmp_path, uid).join(make_spec(uid, slurm={})))
    finally:
        layout.sockets(uid).unlink()
