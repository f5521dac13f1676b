"""The host of the nodes as a driver starts, ends and replaces it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from gpucourse.local import keeper, layout, processes


def test_remove_by_hand_ends_processes_and_files_of_nodes(folder: Path) -> None:
    uid = folder.name
    for name in ("node0", "node1"):
        (folder / name).mkdir()
    (folder / layout.HOST).touch()
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, processes.STACK: uid, processes.NODE: f"{uid}/node1"})
    assert keeper.remove_by_hand(str(folder), json.dumps({"uid": uid, "count": 1}))
    assert process.wait() < 0
    assert layout.node_names(folder) == ["node0"]
    assert keeper.remove_by_hand(str(folder), json.dumps({"uid": uid, "count": 0}))
    assert list(folder.iterdir()) == [], "with the last node the files of the host go"


def test_end_stuck_host_leaves_a_process_that_is_no_host(folder: Path) -> None:
    process = subprocess.Popen(["sleep", "600"])
    layout.write_json(folder / layout.HOST, {"pid": process.pid, "uid": folder.name})
    keeper.end_stuck_host(str(folder))
    assert process.poll() is None
    process.kill()
    process.wait()
