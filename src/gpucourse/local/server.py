"""The SSH server. No other module uses asyncssh.

Each node listens on a port of 127.0.0.1 with its own host key. It accepts one user, with the keys that are in the node's
`.ssh/authorized_keys` at the time of the login. Old-style `scp` and `rsync` are commands like any other; this module also
serves SFTP.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import asyncssh

from gpucourse.local.child import CHUNK, Terminal

ADDRESS = "127.0.0.1"

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_LOGIN_S = 20
_BACKLOG = 128
# The algorithms that OpenSSH and paramiko prefer. The library's own lists end with SHA-1, for clients of twenty years ago. The
# pattern matches curve25519-sha256 and, if the library has it, mlkem768x25519-sha256.
_KEY_EXCHANGES = "*25519-sha256*,ecdh-sha2-nistp256"
_CIPHERS = ("chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes256-ctr")
_MACS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-256", "hmac-sha2-512")
_SIGNATURES = ("ssh-ed25519", "sk-ssh-ed25519@openssh.com", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The settings of one node's SSH server.

    `banner`: the software name in the server's first line.
    `serve`: runs one session.
    `connections`: the open connections, so that they can be aborted.
    """

    user: str
    home: Path
    host_key: Path
    banner: str
    serve: Callable[[SshChannel], Awaitable[None]]
    connections: set[Any]

    @property
    def authorized_keys(self) -> Path:
        """Return the file of keys that allow a login. It is read again at every login."""
        return self.home / ".ssh" / "authorized_keys"


async def listen(endpoint: Endpoint, port: int) -> tuple[int, Callable[[], None]]:
    """Listen on `port`, or on a port that the kernel chooses if it is 0. Return the port, and a function that stops listening.

    Stopping leaves connections open. Raises OSError if the port is in use.
    """

    async def attend(process: asyncssh.SSHServerProcess[bytes]) -> None:
        channel = SshChannel(process)
        if process.subsystem:
            await channel.write(f"this node has no subsystem '{process.subsystem}'\n".encode(), to_errors=True)
            channel.exit(127)
        else:
            await endpoint.serve(channel)

    acceptor = await asyncssh.listen(
        ADDRESS,
        port,
        server_factory=lambda: _Login(endpoint),
        server_host_keys=[asyncssh.read_private_key(endpoint.host_key)],
        server_version=endpoint.banner,
        process_factory=attend,
        sftp_factory=lambda channel: _Files(channel, endpoint.home),
        config=None,
        encoding=None,
        line_editor=False,
        kex_algs=_KEY_EXCHANGES,
        encryption_algs=_CIPHERS,
        mac_algs=_MACS,
        signature_algs=_SIGNATURES,
        compression_algs=None,
        agent_forwarding=False,
        x11_forwarding=False,
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        gss_host=None,  # otherwise every connection asks the resolver for this machine's name
        login_timeout=_LOGIN_S,
        keepalive_interval=0,  # on loopback, a dead client closes its socket; a stopped client may continue later
        reuse_address=True,
        backlog=_BACKLOG,
    )
    return int(acceptor.get_port()), acceptor.close


def make_host_key(path: Path) -> None:
    """Write a new ed25519 key to `path`. Only its owner can read it."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    aside = path.with_name(f"{path.name}.new")
    aside.touch(mode=0o600)
    aside.write_bytes(key.export_private_key())
    aside.replace(path)


def public_part(path: Path) -> str:
    """Return the public part of the key at `path`, as `ssh-ed25519 AAAA...`. Raises ValueError if the file is not a key."""
    try:
        key = asyncssh.read_private_key(path)
    except asyncssh.KeyImportError as error:
        raise ValueError(f"{path}: {error}") from error
    kind, data = key.export_public_key().decode().split()[:2]
    return f"{kind} {data}"


class _Channels(dict[int, Any]):
    """A connection's channels by number. A message for a closed channel is dropped.

    The server may have closed a channel before the client has read its last output. The client may then still report that it
    can receive more output. OpenSSH ignores such a report, but the library would end the whole connection.
    """

    def __getitem__(self, number: int) -> Any:
        channel = self.get(number)
        return _ClosedChannel(number) if getattr(channel, "_recv_state", "closed") in {"close_pending", "closed"} else channel


class _ClosedChannel:
    """The replacement for a channel that no longer exists."""

    def __init__(self, number: int) -> None:
        self._number = number

    def log_received_packet(self, *_packet: object) -> None:
        """Ignore the packet, because there is nothing to log."""

    def process_packet(self, kind: int, *_packet: object) -> bool:
        """Ignore a change of the window size, and return True because it is processed. Raise a protocol error for any other
        packet."""
        if kind != asyncssh.constants.MSG_CHANNEL_WINDOW_ADJUST:
            raise asyncssh.ProtocolError(f"Invalid channel number {self._number} received")
        return True


def _send_unless_empty(send: Callable[..., None], kind: int, *words: bytes, **options: Any) -> None:
    if kind != asyncssh.constants.MSG_IGNORE:
        send(kind, *words, **options)


class _Login(asyncssh.SSHServer):  # type: ignore[misc]
    """The rules for a login: only the node's user, only by key. Ports of this computer may be forwarded in either direction,
    as editors need."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._endpoint.connections.add(conn)
        # The library has no interface for this: if a version keeps its channels elsewhere, nothing is changed.
        if isinstance(channels := getattr(conn, "_channels", None), dict):
            conn._channels = _Channels(channels)  # noqa: SLF001 (the two lines above)
        # The library sends an empty packet before each packet, which only CBC ciphers need: a client would read twice as many.
        conn.send_packet = partial(_send_unless_empty, conn.send_packet)

    def connection_lost(self, exc: Exception | None) -> None:
        self._endpoint.connections.discard(self._connection)
        if exc is not None:
            logger.info("%s: connection lost: %s", self._endpoint.home.parent.name, exc)

    def begin_auth(self, username: str) -> bool:
        if username == self._endpoint.user:
            try:
                self._connection.set_authorized_keys(str(self._endpoint.authorized_keys))
            except (OSError, ValueError) as error:
                logger.warning("no login is possible with %s: %s", self._endpoint.authorized_keys, error)
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:  # noqa: ARG002 (asyncssh hands over all four)
        return dest_host in _LOOPBACK

    def server_requested(self, listen_host: str, listen_port: int) -> bool:  # noqa: ARG002 (asyncssh hands over both)
        return listen_host in _LOOPBACK


class _Files(asyncssh.SFTPServer):  # type: ignore[misc]
    """SFTP with the same paths as in a session. Absolute paths are this computer's own; relative paths start at the node's
    home."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes], home: Path) -> None:
        super().__init__(channel)
        self._home = os.fsencode(home)

    def map_path(self, path: bytes) -> bytes:
        return os.path.join(self._home, path)  # noqa: PTH118 (bytes: a file name need not be UTF-8)

    def symlink(self, oldpath: bytes, newpath: bytes) -> None:
        os.symlink(oldpath, self.map_path(newpath))  # noqa: PTH211 (bytes; as typed: a relative target stays relative)

    def exit(self) -> None:
        self.channel.exit(0)  # without an exit code, `scp` reports a successful copy as failed


class SshChannel:
    """The client's side of a session.

    `command`: None for a login shell.
    `terminal`: None if the client requested no terminal.
    """

    def __init__(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        self._process = process
        self.command: str | None = process.command
        self.terminal: Terminal | None = None
        if process.term_type:
            columns, rows, _, _ = process.term_size
            self.terminal = Terminal(kind=process.term_type, columns=columns, rows=rows)
        self.environment: Mapping[str, str] = dict(process.env)

    async def read(self) -> bytes:
        """Return the next bytes for the process's input, or no bytes at its end. Raises ConnectionError."""
        try:
            return bytes(await self._process.stdin.read(CHUNK))
        except (OSError, asyncssh.Error) as error:
            raise ConnectionError(str(error)) from error

    async def write(self, data: bytes, *, to_errors: bool = False) -> None:
        """Send output. Return when more can be sent. Raises ConnectionError."""
        stream = self._process.stderr if to_errors else self._process.stdout
        try:
            stream.write(data)
            await stream.drain()
        except (OSError, asyncssh.Error) as error:
            raise ConnectionError(str(error)) from error

    async def wait_closed(self) -> None:
        """Wait until the client has disconnected."""
        await self._process.channel.wait_closed()

    def listen(self, on_signal: Callable[[str], None], on_size: Callable[[int, int], None]) -> None:
        """Call `on_signal` for each of the client's signals, such as `TERM`.

        Call `on_size` for each new size of the client's window, in columns and rows.
        """

        def handle_exception(exception: Exception) -> None:
            if isinstance(exception, asyncssh.SignalReceived):
                on_signal(exception.signal)
            elif isinstance(exception, asyncssh.BreakReceived):
                on_signal("INT")
            elif isinstance(exception, asyncssh.TerminalSizeChanged):
                on_size(exception.width, exception.height)

        # The library passes these to its own redirections only, and its signals reach one process, not the group.
        process: Any = self._process
        process.exception_received = handle_exception

    def exit(self, code: int) -> None:
        """Send the exit code and end the session."""
        self._finish(lambda: self._process.exit(code))

    def exit_by_signal(self, name: str) -> None:
        """Send the name of the signal that ended the process, such as `KILL`, and end the session."""
        self._finish(lambda: self._process.exit_with_signal(name))

    def _finish(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except (OSError, asyncssh.Error) as error:
            logger.info("the client left before it received the exit code: %s", error)
