"""Real OpenSSH servers on loopback, one per node, each with its own home folder. A test ends what it starts."""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import pytest

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
MaxSessions 10
UseDNS no
{more}"""

_ACCOUNTS = """\
ListenAddress 127.0.0.1
Port {port}
HostKey "{folder}/host_key"
PidFile "{folder}/pid"
AuthorizedKeysFile "{folder}/keys/%u"
UsePAM no
StrictModes no
AuthenticationMethods publickey
UseDNS no
"""


@dataclass(frozen=True)
class Server:
    """One node: how to reach it, where its home is, which process listens."""

    node: Node
    home: Path
    process: subprocess.Popen[bytes]


@contextmanager
def openssh_nodes(folder: Path, count: int, key: Path, *, shell: str = "") -> Iterator[list[Server]]:
    """`count` nodes that the private key opens. `shell` is a command line that gets what is to be run as $SSH_ORIGINAL_COMMAND,
    in place of the user's own login shell. Skips where there is no OpenSSH server, or not the folder that it needs."""
    sshd = shutil.which("sshd", path="/opt/homebrew/sbin") or need("sshd")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "authorized_keys").write_text(ensure_client_key(key) + "\n")
    servers: list[Server] = []
    try:
        for index in range(count):
            servers.append(_start(sshd, folder, f"node{index}", shell))  # one that fails must not hide the others
        for server in servers:
            _wait(server, folder / server.node.name / "log")
        yield servers
    finally:
        for server in servers:
            server.process.terminate()
        for server in servers:
            server.process.wait(STUCK_S)


def _start(sshd: str, folder: Path, name: str, shell: str) -> Server:
    home, port = folder / name / "home", take_port()
    home.mkdir(parents=True)
    public = ensure_client_key(folder / name / "host_key")
    config = folder / name / "sshd_config"
    config.write_text(_CONFIG.format(port=port, folder=folder, name=name, more=f"ForceCommand {shell}\n" if shell else ""))
    process = subprocess.Popen([sshd, "-D", "-f", str(config), "-E", str(folder / name / "log")])
    return Server(_node(name, port, public), home, process)


def _node(name: str, port: int, host_key: str) -> Node:
    return Node(
        name=name,
        role="head" if name == "node0" else "worker",
        address="127.0.0.1",
        port=port,
        private_address="127.0.0.1",
        user=getpass.getuser(),
        gpus=0,
        instance_type="test",
        python=sys.executable,
        mode="local",
        host_key=" ".join(host_key.split()[:2]),
    )


def explain(code: int, log: str, *, installed: Path = INSTALLED) -> NoReturn:
    """End the test because sshd did not start: as a missing part where it names the folder that it needs, else as a failure."""
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


@dataclass(frozen=True, kw_only=True)
class Account:
    """Somebody who can log in. `rc`: the start files, by their names below the home; `forced`: what runs in place of every
    command; `path`: the folders of programs in place of the system's; `disk`: options of a small disk that is the home."""

    name: str
    shell: str
    home: str = ""
    rc: dict[str, str] = field(default_factory=dict)
    forced: str = ""
    path: str = ""
    disk: str = ""


@contextmanager
def openssh_accounts(folder: Path, accounts: Sequence[Account], key: Path) -> Iterator[dict[str, Server]]:
    """A server with these accounts, each with a real login shell: the server alone sees the password file that names them, in a
    mount namespace of its own. All of them have the number of root, so that every folder of a test is open to them.

    Skips where the tests do not run as root, or may make no such namespace.
    """
    if os.geteuid() != 0:
        pytest.skip(
            "only root can give an OpenSSH server accounts of its own; other tests replace the shell by a forced command"
        )
    sshd = need("sshd")
    for name in ("etc", "keys", "homes"):
        (folder / name).mkdir(parents=True)
    homes = {account.name: folder / "homes" / (account.home or account.name) for account in accounts}
    public, mounts, matches = ensure_client_key(key), [], []
    for account in accounts:
        forced = f"command={json.dumps(account.forced)} " if account.forced else ""
        (folder / "keys" / account.name).write_text(f"{forced}{public}\n")
        homes[account.name].mkdir()
        for name, text in account.rc.items():
            (homes[account.name] / name).parent.mkdir(parents=True, exist_ok=True)
            (homes[account.name] / name).write_bytes(text.encode("utf-8", "surrogateescape"))
        if account.disk:
            mounts.append(f"mount -t tmpfs -o {account.disk} none {shlex.quote(str(homes[account.name]))}")
        if account.path:
            matches.append(f"Match User {account.name}\n    SetEnv PATH={account.path}\n")
    lines = [f"{account.name}:x:0:0::{homes[account.name]}:{account.shell}\n" for account in accounts]
    (folder / "etc" / "passwd").write_text(Path("/etc/passwd").read_text() + "".join(lines))
    with _listening(folder, [sshd], mounts, "".join(matches)) as server:
        yield {name: replace(server, node=replace(server.node, user=name), home=home) for name, home in homes.items()}


@contextmanager
def _listening(folder: Path, sshd: list[str], mounts: Sequence[str], matches: str) -> Iterator[Server]:
    port, public = take_port(), ensure_client_key(folder / "host_key")
    text = _ACCOUNTS.format(port=port, folder=folder) + matches
    (folder / "sshd_config").write_text(text)
    script = ["set -e", f"mount --bind {shlex.quote(str(folder / 'etc/passwd'))} /etc/passwd", *mounts, 'exec "$@"']
    words = [need("unshare"), "--mount", "--propagation", "private", "sh", "-c", "\n".join(script), "sh"]
    if (tried := subprocess.run([*words, "true"], capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"this machine does not let the tests mount anything: {tried.stderr.strip()}")
    log = folder / "log"
    process = subprocess.Popen([*words, *sshd, "-D", "-f", str(folder / "sshd_config"), "-E", str(log)])
    server = Server(_node("node0", port, public), folder, process)
    try:
        _wait(server, log)
        yield server
    finally:
        process.terminate()
        process.wait(STUCK_S)
