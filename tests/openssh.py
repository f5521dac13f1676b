"""Real OpenSSH servers on loopback, one for each node, each with its own home folder. A test ends the servers it starts."""

from __future__ import annotations

import getpass
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from gpucourse.model.node import Node
from gpucourse.remote.keys import ensure_client_key
from tests.parts import INSTALLED, lack, need
from tests.ports import take_port
from tests.waiting import STUCK_S

_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey "{folder}/{name}/host_key"
PidFile "{folder}/{name}/pid"
AuthorizedKeysFile "{folder}/authorized_keys"
UsePAM no
StrictModes no
AuthenticationMethods publickey
SetEnv "HOME={folder}/{name}/home"
Subsystem sftp internal-sftp -d "{folder}/{name}/home"
MaxStartups 100:30:200
MaxSessions {sessions}
UseDNS no
{more}"""


@dataclass(frozen=True)
class Server:
    """One node: how to reach it, where its home is, which process listens."""

    node: Node
    home: Path
    process: subprocess.Popen[bytes]


@contextmanager
def openssh_nodes(folder: Path, count: int, key: Path, *, shell: str = "", sessions: int = 10) -> Iterator[list[Server]]:
    """Yield `count` nodes that accept the private key.

    `shell`: a command line that runs instead of the user's own login shell, with the command in $SSH_ORIGINAL_COMMAND.
    `sessions`: how many channels a connection may have. Skip the test without an OpenSSH server, or without the folder that it
    needs.
    """
    sshd = shutil.which("sshd", path="/opt/homebrew/sbin") or need("sshd")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "authorized_keys").write_text(ensure_client_key(key) + "\n")
    servers: list[Server] = []
    try:
        for index in range(count):
            servers.append(_start(sshd, folder, f"node{index}", shell, sessions))  # one that fails must not hide the others
        for server in servers:
            _wait(server, folder / server.node.name / "log")
        yield servers
    finally:
        for server in servers:
            server.process.terminate()
        for server in servers:
            server.process.wait(STUCK_S)


def _start(sshd: str, folder: Path, name: str, shell: str, sessions: int) -> Server:
    home, port = folder / name / "home", take_port()
    home.mkdir(parents=True)
    public = ensure_client_key(folder / name / "host_key")
    config = folder / name / "sshd_config"
    lines = f"ForceCommand {shell}\n" if shell else ""
    config.write_text(_CONFIG.format(port=port, folder=folder, name=name, sessions=sessions, more=lines))
    process = subprocess.Popen([sshd, "-D", "-f", str(config), "-E", str(folder / name / "log")])
    return Server(_node(name, port, public), home, process)


def _node(name: str, port: int, host_key: str) -> Node:
    return Node(
        name=name, role="head" if name == "node0" else "worker", address="127.0.0.1", port=port, private_address="127.0.0.1",
        user=getpass.getuser(), gpus=0, instance_type="test", python=sys.executable, mode="local",
        host_key=" ".join(host_key.split()[:2]),
    )  # fmt: skip


def explain(code: int, log: str, *, installed: Path = INSTALLED) -> NoReturn:
    """End the test because sshd did not start. If sshd lacks the folder that it needs, the test reports a missing part;
    otherwise, it fails.
    """
    if missing := re.search(r"Missing privilege separation directory: (\S+)", log):
        lack(missing[1], installed=installed)
    raise AssertionError(f"sshd ended with code {code}: {log}")


def _wait(server: Server, log: Path) -> None:
    deadline = time.monotonic() + STUCK_S
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            explain(server.process.returncode, log.read_text(errors="replace") if log.exists() else "no log")
        try:
            socket.create_connection(("127.0.0.1", server.node.port), 1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise AssertionError("sshd did not listen in time")
