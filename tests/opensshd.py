"""Real OpenSSH servers on loopback, one a node, each with its own home folder: what a test starts it also ends."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpucourse.model.node import Node
from gpucourse.remote.keys import ensure_client_key

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin:/opt/homebrew/sbin")


@dataclass(frozen=True)
class Server:
    """One node: how to reach it, where its home is, which process listens."""

    node: Node
    home: Path
    process: subprocess.Popen[bytes]


@contextmanager
def openssh_nodes(folder: Path, count: int) -> Iterator[tuple[list[Server], Path]]:
    """`count` nodes and the private key that opens them."""
    if SSHD is None:
        pytest.skip("no OpenSSH server (sshd) on this machine")
    folder.mkdir(parents=True, exist_ok=True)
    key = folder / "id_ed25519"
    (folder / "authorized_keys").write_text(ensure_client_key(key) + "\n")
    servers: list[Server] = []
    try:
        servers.extend(_start(folder, f"node{index}") for index in range(count))
        for server in servers:
            _wait(server)
        yield servers, key
    finally:
        for server in servers:
            server.process.terminate()
        for server in servers:
            server.process.wait(10)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _start(folder: Path, name: str) -> Server:
    home, host_key, port = folder / name / "home", folder / name / "host_key", free_port()
    home.mkdir(parents=True)
    public = ensure_client_key(host_key)
    config = folder / name / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {host_key}\nPidFile {folder / name / 'pid'}\n"
        f"AuthorizedKeysFile {folder / 'authorized_keys'}\nUsePAM no\nStrictModes no\nAuthenticationMethods publickey\n"
        f"SetEnv HOME={home}\nSubsystem sftp internal-sftp -d {home}\nMaxStartups 100:30:200\nMaxSessions 10\nUseDNS no\n"
    )
    process = subprocess.Popen([str(SSHD), "-D", "-f", str(config), "-E", str(folder / name / "log")])
    node = Node(
        name=name, role="head" if name == "node0" else "worker", address="127.0.0.1", port=port, private_address="127.0.0.1",
        user=getpass.getuser(), gpus=0, instance_type="test", python=sys.executable, mode="local", host_key=public,
    )  # fmt: skip
    return Server(node, home, process)


def _wait(server: Server) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            pytest.skip(f"sshd does not start here (code {server.process.returncode}); root needs /run/sshd")
        try:
            socket.create_connection(("127.0.0.1", server.node.port), 1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise AssertionError("sshd did not listen in time")
