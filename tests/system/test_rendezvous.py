"""A simulated node listens only on loopback while ranks meet, with real torchrun, real torch and the node's own environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.local import environment
from tests.ports import take_port
from tests.waiting import STUCK_S

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells which addresses a process listens on")

SCRIPT = """
import os
from pathlib import Path
import torch.distributed as dist

def listening(pid):
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(link))
        except FileNotFoundError:
            pass
    for name in ("tcp", "tcp6"):
        for row in Path(f"/proc/self/net/{name}").read_text().splitlines()[1:]:
            words = row.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                yield words[1].partition(":")[0]

dist.init_process_group("gloo")
dist.destroy_process_group()
dist.init_process_group("gloo")  # once more at the same port, as a notebook does
dist.barrier()
print("LISTENS", dist.get_world_size(), *listening(os.getpid()), *listening(os.getppid()))
dist.destroy_process_group()
"""
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}  # IPv4, IPv4 in IPv6, IPv6


def _listens(tmp_path: Path, *command: str, **options: str) -> set[str]:
    """Return the addresses on which rank 0 and its parent listen while it is in the process group, as /proc spells them."""
    script = tmp_path / "meet.py"
    script.write_text(SCRIPT, encoding="utf-8")
    env = environment.make_node_environment(
        name="n0", uid="u", user="learner", python=sys.executable, home=tmp_path, shell="/bin/sh", host={"LD_LIBRARY_PATH": ""}
    )
    result = subprocess.run(
        [sys.executable, *command, str(script)],
        env={**env, "GLOO_SOCKET_IFNAME": "lo", **options},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=STUCK_S,
        check=False,
    )
    line = next((line for line in result.stdout.splitlines() if line.startswith("LISTENS ")), result.stderr)
    return set(line.split()[2:])


TORCHRUN = ("-m", "torch.distributed.run", "--nnodes=1")


@pytest.mark.parametrize(
    "start",
    [
        "python",
        pytest.param("torchrun", marks=pytest.mark.slow),
        pytest.param("c10d", marks=pytest.mark.slow),  # as a file for sbatch starts it, with a name instead of an address
    ],
)
def test_ranks_listen_on_loopback_alone(tmp_path: Path, start: str) -> None:
    port = str(take_port())
    options = {
        "python": (),
        "torchrun": (*TORCHRUN, "--node-rank=0", "--master-addr=127.0.0.1", f"--master-port={port}"),
        "c10d": (*TORCHRUN, "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}"),
    }
    by_hand = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    addresses = _listens(tmp_path, *options[start], **(by_hand if start == "python" else {}))
    assert addresses
    assert addresses <= LOOPBACK
