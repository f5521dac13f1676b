"""An SSH server that keeps to no rule of the protocol takes no memory and no time without end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import paramiko
import pytest

from gpucourse.errors import UnreachableError
from gpucourse.model.node import Node
from gpucourse.remote.keys import ensure_client_key
from gpucourse.remote.sockets import RegularChecks
from gpucourse.remote.ssh import WINDOW, SshLink, SshTransport, _Transport
from tests.unit.remote.test_follow_untrusted import NODE
from tests.waiting import STUCK_S

MANY = 40 * WINDOW


class _Greedy(paramiko.ServerInterface):
    """Lets everybody in, and sends without regard to the window once a command is asked for."""

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
    """Freezes when it is asked for a command."""

    def __init__(self) -> None:
        super().__init__()
        self.thawed = threading.Event()

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.thawed.wait(STUCK_S)
        return bool(channel and not command)


@contextmanager
def listening() -> Iterator[tuple[socket.socket, Node]]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        yield door, replace(NODE, address="127.0.0.1", port=door.getsockname()[1])


@pytest.mark.timeout(60)
def test_a_server_that_ignores_the_window_loses_its_connection(tmp_path: Path) -> None:
    host_key = paramiko.RSAKey.generate(2048)
    ensure_client_key(tmp_path / "key")
    sent: list[int] = []

    def serve(door: socket.socket) -> None:
        transport = paramiko.Transport(door.accept()[0])
        transport.add_server_key(host_key)
        server = _Greedy()
        transport.start_server(server=server)
        channel = transport.accept(20)
        assert channel is not None
        assert server.asked.wait(STUCK_S)
        with suppress(OSError, EOFError):
            for _ in range(MANY // 32_000):
                channel.sendall(bytes(32_000))
                sent.append(32_000)
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
        assert sum(sent) < MANY
        link.close()


@pytest.mark.timeout(60)
def test_a_packet_that_claims_four_gigabytes_is_not_waited_for(tmp_path: Path) -> None:
    ensure_client_key(tmp_path / "key")

    def serve(door: socket.socket) -> None:
        with door.accept()[0] as line, suppress(OSError):
            line.sendall(b"SSH-2.0-liar\r\n" + (0xFFFFFFF4).to_bytes(4, "big") + bytes(1 << 20))
            while line.recv(1 << 16):
                continue

    with listening() as (door, node):
        threading.Thread(target=serve, args=(door,), daemon=True).start()
        with pytest.raises(UnreachableError, match="a packet of 4294967"):
            SshTransport(tmp_path / "key").connect(replace(node, host_key="ssh-ed25519 AAAA"), timeout_s=5.0)


@pytest.mark.timeout(60)
def test_a_server_that_freezes_as_a_command_begins_loses_its_connection(tmp_path: Path) -> None:
    host_key, server = paramiko.RSAKey.generate(2048), _Frozen()
    ensure_client_key(tmp_path / "key")

    def serve(door: socket.socket) -> None:
        transport = paramiko.Transport(door.accept()[0])
        transport.add_server_key(host_key)
        transport.start_server(server=server)
        server.thawed.wait(STUCK_S)
        transport.close()

    with listening() as (door, node):
        thread = threading.Thread(target=serve, args=(door,), daemon=True)
        thread.start()
        pinned = replace(node, host_key=f"{host_key.get_name()} {host_key.get_base64()}")
        link = SshTransport(tmp_path / "key").connect(pinned)
        with pytest.raises(UnreachableError, match=r"the connection was lost \(no answer for 0.5 s\)"):
            link.run("anything", timeout_s=0.5)
        assert not link.alive
        server.thawed.set()
        thread.join(STUCK_S)
        link.close()


@pytest.mark.timeout(60)
def test_a_server_that_freezes_as_a_channel_is_opened_loses_its_connection(tmp_path: Path) -> None:
    ensure_client_key(tmp_path / "key")

    class Frozen(_Frozen):
        def check_channel_request(self, kind: str, chanid: int) -> int:
            self.thawed.wait(STUCK_S)
            return super().check_channel_request(kind, chanid)

    host_key, server = paramiko.RSAKey.generate(2048), Frozen()

    def serve(door: socket.socket) -> None:
        transport = paramiko.Transport(door.accept()[0])
        transport.add_server_key(host_key)
        transport.start_server(server=server)
        server.thawed.wait(STUCK_S)
        transport.close()

    with listening() as (door, node):
        thread = threading.Thread(target=serve, args=(door,), daemon=True)
        thread.start()
        pinned = replace(node, host_key=f"{host_key.get_name()} {host_key.get_base64()}")
        link = SshTransport(tmp_path / "key").connect(pinned)
        with pytest.raises(UnreachableError):
            link.run("anything", timeout_s=0.5)
        alive = link.alive
        server.thawed.set()
        thread.join(STUCK_S)
        link.close()
    assert not alive


class _Refusing:
    """A transport that does not say what the first refusals were, as paramiko does not where several come at once."""

    def __init__(self) -> None:
        self.asked = 0

    def is_active(self) -> bool:
        return self.asked < 10

    def open_session(self, timeout: float) -> object:
        self.asked += 1
        if self.asked < 3 and timeout:
            raise paramiko.SSHException("Unable to open channel.")
        return self

    def close(self) -> None:
        self.asked = 10


def test_a_channel_refused_for_no_stated_reason_is_asked_for_again() -> None:
    transport = _Refusing()
    link = SshLink(NODE, cast("Any", transport), checks=RegularChecks(60), patience_s=60)
    assert cast("Any", link._session(20)) is transport
    assert transport.asked == 3
    link.close()


def test_a_connection_that_ends_as_a_channel_opens_ends_in_order() -> None:
    """Between putting a channel down and telling it its connection, paramiko's thread may come to close every channel."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        transport, channel = cast("Any", _Transport(ours)), cast("Any", paramiko.Channel(0))
        transport._channels.put(0, channel)
        channel._unlink()
        assert transport._channels.values() == []
        transport.close()
