"""An SSH server that violates the protocol cannot use unlimited memory or time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from gpucourse.errors import MissingError, NoAnswer, UnreachableError
from gpucourse.model.node import Node
from gpucourse.remote.keys import ensure_client_key
from gpucourse.remote.ssh import WINDOW, SshTransport
from tests.unit.remote.test_follow import NODE
from tests.waiting import STUCK_S

MANY = 40 * WINDOW


class _Greedy(paramiko.ServerInterface):
    """Accepts every login, and ignores the window when it sends the output of a command."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def get_allowed_auths(self, username: str) -> str:
        return "publickey" if username else ""

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return 0 if username and key else 2  # it may come in

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return 0 if kind and chanid >= 0 else 1  # opened

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        channel.out_window_size = 1 << 40
        self.asked.set()
        return bool(command)


class _Frozen(_Greedy):
    """Freezes when a channel is opened, or when a command is sent on it."""

    def __init__(self, at: str = "exec") -> None:
        super().__init__()
        self.at, self.thawed = at, threading.Event()

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if self.at == "open":
            self.thawed.wait(STUCK_S)
        return super().check_channel_request(kind, chanid)

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.thawed.wait(STUCK_S)
        return bool(channel and not command)


@contextmanager
def listening() -> Iterator[tuple[socket.socket, Node]]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        yield door, replace(NODE, address="127.0.0.1", port=door.getsockname()[1])


@contextmanager
def _serve(server: _Frozen) -> Iterator[Node]:
    """Serve one connection, and yield the node with its host key."""
    host_key = paramiko.RSAKey.generate(2048)

    def serve(door: socket.socket) -> None:
        transport = paramiko.Transport(door.accept()[0])
        transport.add_server_key(host_key)
        transport.start_server(server=server)
        server.thawed.wait(STUCK_S)
        transport.close()

    with listening() as (door, node):
        thread = threading.Thread(target=serve, args=(door,), daemon=True)
        thread.start()
        yield replace(node, host_key=f"{host_key.get_name()} {host_key.get_base64()}")
        server.thawed.set()
        thread.join(STUCK_S)


@pytest.mark.timeout(60)
def test_connect_ends_when_the_server_ignores_the_window(tmp_path: Path) -> None:
    host_key = paramiko.RSAKey.generate(2048)
    ensure_client_key(tmp_path / "key")
    sizes: list[int] = []

    def serve(door: socket.socket) -> None:
        transport = paramiko.Transport(door.accept()[0])
        transport.add_server_key(host_key)
        server = _Greedy()
        transport.start_server(server=server)
        channel = transport.accept(50)
        assert channel is not None
        assert server.asked.wait(STUCK_S)
        with suppress(OSError, EOFError):
            for _ in range(MANY // 32_000):
                channel.sendall(bytes(32_000))
                sizes.append(32_000)
        transport.close()

    with listening() as (door, node):
        thread = threading.Thread(target=serve, args=(door,), daemon=True)
        thread.start()
        pinned = replace(node, host_key=f"{host_key.get_name()} {host_key.get_base64()}")
        link = SshTransport(tmp_path / "key").connect(pinned)
        channel = link._transport.open_session()
        channel.exec_command("anything")
        thread.join(STUCK_S)  # nobody reads
        assert not link.alive
        assert len(channel.in_buffer) <= 2 * WINDOW + (1 << 16)
        assert sum(sizes) < MANY
        link.close()


def test_connect_names_a_closed_port_and_a_missing_key(tmp_path: Path) -> None:
    ensure_client_key(tmp_path / "key")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))  # kept, and nobody listens there
        node = replace(NODE, address="127.0.0.1", port=listener.getsockname()[1], host_key="ssh-ed25519 AAAA")
        with pytest.raises(NoAnswer, match="connection refused"):
            SshTransport(tmp_path / "key").connect(node)
        with pytest.raises(MissingError, match="no-key"):
            SshTransport(tmp_path / "no-key").connect(node)


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (b"", "no SSH handshake within 0.3 s"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ""),
        (b"SSH-2.0-then-nothing\r\n", "no SSH handshake within 0.3 s"),
        (b"SSH-2.0-then-much\r\n\x7f\xff\xff\xfc" + bytes(12), "the server announces a packet of 2147483640 bytes"),
    ],
)
def test_connect_gives_up_when_no_ssh_server_answers(tmp_path: Path, greeting: bytes, reason: str) -> None:
    ensure_client_key(tmp_path / "key")
    sockets: list[socket.socket] = []

    def serve(door: socket.socket) -> None:
        sockets.append(door.accept()[0])
        sockets[0].sendall(greeting)

    timeout_s = 0.3 if "within" in reason else STUCK_S
    with listening() as (door, node):
        threading.Thread(target=serve, args=(door,), daemon=True).start()
        with pytest.raises(NoAnswer, match=f"node0 does not answer SSH .*{reason}"):
            SshTransport(tmp_path / "key").connect(replace(node, host_key="ssh-ed25519 AAAA"), timeout_s=timeout_s)
        for line in sockets:
            line.close()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("frozen", ["exec", "open"])
def test_connect_ends_when_the_server_freezes(tmp_path: Path, frozen: str) -> None:
    ensure_client_key(tmp_path / "key")
    server = _Frozen(frozen)
    with _serve(server) as node:
        link = SshTransport(tmp_path / "key").connect(node)
        with pytest.raises(UnreachableError, match=r"no answer for 0.5 s" if frozen == "exec" else "node0"):
            link.run("anything", timeout_s=0.5)
        assert not link.alive
        server.thawed.set()
        link.close()
