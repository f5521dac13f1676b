"""Sessions on simulated nodes, from start to end: signals, terminals, back-pressure, and clients that vanish."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gpucourse.local import processes
from tests.parts import need, need_module
from tests.simulated import SimulatedNodes, serve_simulated_nodes
from tests.waiting import STUCK_S, until

asyncssh = need_module("asyncssh")

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedNodes]:
    with serve_simulated_nodes(tmp_path_factory.mktemp("sessions"), 1) as lab:
        yield lab


@pytest.fixture(autouse=True)
def nothing_runs_on(lab: SimulatedNodes) -> Iterator[None]:
    yield
    until(
        lambda: list_processes(lab) == [], "the end of every process"
    )  # a process that is starting a program is invisible for a moment


def list_processes(lab: SimulatedNodes) -> list[int]:
    """Return the processes on the node, except the host."""
    return processes.list_carriers(processes.marker(processes.NODE, f"{lab.uid}/node0"))


@asynccontextmanager
async def connect(lab: SimulatedNodes) -> AsyncIterator[Any]:
    node = lab.node("node0")
    known_hosts = asyncssh.import_known_hosts(f"[127.0.0.1]:{node.port} {node.host_key}\n")
    settings = {
        "known_hosts": known_hosts,
        "client_keys": [str(lab.key)],
        "username": node.user,
        "config": None,
        "agent_path": None,
    }
    async with asyncssh.connect("127.0.0.1", node.port, gss_host=None, **settings) as connection:
        yield connection


# A shell without a trap forgets an interrupt that comes while its child is just ending by itself.
INTERRUPTED = "trap 'trap - INT; kill -INT $$' INT"


def test_terminal_has_the_size_and_the_keys_of_the_client(lab: SimulatedNodes) -> None:
    script = f"stty -echo; stty size; {INTERRUPTED}; trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done"

    async def ask() -> list[str]:
        async with connect(lab) as connection:
            process = await connection.create_process(script, term_type="xterm", term_size=(91, 17))
            lines = [await process.stdout.readline() for _ in range(2)]
            process.change_terminal_size(132, 50)
            lines.append(await process.stdout.readline())
            process.stdin.write("\x03")
            code = await process.wait()
            return [*(line.strip() for line in lines), code.exit_signal[0]]

    assert asyncio.run(ask()) == ["17 91", "ready", "50 132", "INT"]


def memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("no /proc on this machine")
    return int(status.read_text().split("VmRSS:")[1].split()[0]) / 1024


def test_output_waits_for_a_client_that_does_not_read(lab: SimulatedNodes) -> None:
    baseline = memory_mib(lab.host_pid)
    words = [need("ssh"), *lab.options("node0"), lab.address("node0"), "head -c 40000000 /dev/zero; echo >&2 whole"]
    client = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    assert client.stdout is not None
    try:
        assert client.stdout.read(1000) == bytes(1000)
        for _ in range(10):  # meanwhile the node serves others
            assert lab.ssh("node0", "true").returncode == 0
        assert memory_mib(lab.host_pid) < baseline + 30
        remainder, errors = client.communicate(timeout=STUCK_S)
        assert (client.returncode, len(remainder), errors) == (0, 40_000_000 - 1000, b"whole\n")
    finally:
        client.kill()
        client.communicate()


LOOP = "while :; do sleep 0.1; done"
STUBBORN = f"trap '' HUP TERM INT; setsid sh -c 'trap \"\" HUP TERM; echo $$; {LOOP}' & {LOOP}"


@pytest.mark.parametrize(
    ("script", "terminal"),
    [("setsid sleep 600 & sleep 600 & echo $$; wait", ["-tt"]), (STUBBORN, [])],
    ids=["meek, with a terminal", "stubborn"],
)
def test_processes_end_when_their_client_is_killed(lab: SimulatedNodes, script: str, terminal: list[str]) -> None:
    client = begin(lab, script, terminal)
    until(
        lambda: len(list_processes(lab)) >= 3, "all run"
    )  # a process that is starting a program has no environment for a moment
    client.kill()
    client.communicate()
    until(lambda: list_processes(lab) == [], "every process ends")


def begin(lab: SimulatedNodes, script: str, terminal: list[str]) -> subprocess.Popen[bytes]:
    """Return a client whose command has printed its first line."""
    words = [need("ssh"), *terminal, *lab.options("node0"), lab.address("node0"), script]
    client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert client.stdout is not None
    assert client.stdout.readline().strip().isdigit()
    return client


@pytest.mark.slow
def test_input_does_not_end_when_the_connection_is_dropped(lab: SimulatedNodes) -> None:
    """Drop the connection in the middle of a file. The command that receives it must not take it for complete."""
    half = lab.home("node0") / "half"
    client = begin(lab, "trap '' HUP TERM; echo $$; cat > half; echo $? > ended", [])
    assert client.stdin is not None
    client.stdin.write(b"half")
    client.stdin.flush()
    until(lambda: half.exists() and half.read_bytes() == b"half", "the half arrives")
    os.kill(client.pid, signal.SIGKILL)
    client.communicate()
    until(lambda: list_processes(lab) == [], "the command ends")
    assert not (lab.home("node0") / "ended").exists()
