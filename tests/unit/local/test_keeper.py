"""Starting, ending and replacing the host of the nodes, as a driver does it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gpucourse.local import keeper, layout


def test_end_stuck_host_leaves_a_process_that_is_no_host(folder: Path) -> None:
    process = subprocess.Popen(["sleep", "600"])
    layout.write_json(folder / layout.HOST, {"pid": process.pid, "uid": folder.name})
    keeper.end_stuck_host(str(folder))
    assert process.poll() is None
    process.kill()
    process.wait()
