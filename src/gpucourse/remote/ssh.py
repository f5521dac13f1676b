"""SSH to one node, with a pinned host key, one key file, no agent, a channel for each command, and a limit for every wait."""

from __future__ import annotations

import logging
import re
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import paramiko
from paramiko.common import MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA

from gpucourse.errors import MissingError, NoAnswer, UnreachableError
from gpucourse.model.node import Node
from gpucourse.outside.files import read_named
from gpucourse.remote.command_link import CommandLink
from gpucourse.remote.exchange import LOST
from gpucourse.remote.keys import fingerprint, make_other_key_error, parse_pinned_keys
from gpucourse.remote.patience import CONNECT_S

logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)

MAX_KEY = 1 << 16
"""The largest size of a private key file, in bytes."""
MAX_PACKET = 1 << 20
"""The maximum number of bytes in one packet. A server may send packets of 32 KiB, but paramiko would read a packet of any
length."""
WINDOW = 4 << 20
"""The maximum number of bytes that may be in transit on one channel."""

_REFUSED_S = 5.0  # how long a server may refuse another channel before the refusal is final
_ALIVE_EVERY_S = 15.0
_SIGNED = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}  # the signature algorithms that keys of this kind use today


T = TypeVar("T", socket.socket, paramiko.Transport)


class KeyRefused(UnreachableError):
    """The node answers, but it does not accept our key."""


class SecondFactor(UnreachableError):
    """The node accepts our key, but then asks for something that only a person can type."""


@contextmanager
def _closed_on_error(connection: T) -> Iterator[T]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


class SshTransport:
    """Make links with one private key, or with the key that a node's record names. Implements ports.Transport."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file

    def connect(self, node: Node, *, timeout_s: float = CONNECT_S, shared: str = "") -> SshLink:
        """Connect to a node and log in, with its host key pinned. Raises UnreachableError, or MissingError if the key cannot be
        read."""
        file = Path(node.key) if node.key else self._key_file
        key, pinned = self._private_key(file), parse_pinned_keys(node)
        with _closed_on_error(dial(node, timeout_s)) as sock:
            transport = _negotiate(node, sock, pinned[0][0], timeout_s)
        with _closed_on_error(transport):
            server_key = transport.get_remote_server_key()
            if (server_key.get_name(), server_key.get_base64()) not in pinned:
                raise make_other_key_error(node, fingerprint(server_key.asbytes()))
            _authenticate(node, transport, key, file)
        return SshLink(node, transport, shared)

    def _private_key(self, file: Path) -> paramiko.PKey:
        try:
            read_named(file, MAX_KEY)  # reading a device or a pipe would never end
            return paramiko.PKey.from_path(file)
        except (OSError, ValueError, TypeError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
            raise _make_key_error(file, error, is_own=file == self._key_file) from error


class SshLink(CommandLink):
    """A live connection to one node over SSH, with a channel for each command."""

    def __init__(self, node: Node, transport: paramiko.Transport, shared: str = "") -> None:
        super().__init__(node, shared)
        self._transport = transport
        self._ahead: list[paramiko.Channel] = []
        self._place_ahead = threading.Semaphore()

    @property
    def alive(self) -> bool:
        """Return whether the connection is still open, as far as this computer can tell."""
        return self._transport.is_active()

    def close(self) -> None:
        """Close the connection. Detached processes on the node keep running."""
        self._transport.close()

    def _start(self, line: str, timeout_s: float, /) -> paramiko.Channel:
        """Start a command line, and return its channel. Also open another channel, which saves the next command a round
        trip."""
        guard = threading.Timer(timeout_s, self._transport.close)  # exec_command waits without a limit
        guard.daemon = True
        guard.start()
        try:
            channel = self._open(timeout_s)
            threading.Thread(target=self._open_ahead, name=f"ssh-ahead-{self.node.name}", daemon=True).start()
            channel.exec_command(line)
        except LOST as error:
            if not isinstance(error, paramiko.ChannelException):  # a server that refuses a channel is alive
                self._transport.close()
            reason = f"no answer for {timeout_s:g} s" if guard.finished.is_set() else str(error) or type(error).__name__
            raise UnreachableError(
                f"{self.node.label}: the connection was lost ({reason})",
                hint="gpucourse status shows which nodes are alive; what was started on the node keeps running",
            ) from error
        finally:
            guard.cancel()
        return channel

    def _open(self, timeout_s: float) -> paramiko.Channel:
        """Return the channel that was opened in advance, or a new one.

        If the server refuses, try again for a short time: a busy server may still count a channel that was just closed.
        """
        deadline = time.monotonic() + min(timeout_s, _REFUSED_S)
        while True:
            try:
                return self._take_ahead() or self._transport.open_session(timeout=timeout_s)
            except paramiko.SSHException:  # of several refusals at the same moment, paramiko reports the reason of only one
                if not self.alive or time.monotonic() >= deadline:
                    raise
                time.sleep(0.05)

    def _open_ahead(self) -> None:
        """Open a channel in advance, unless there is one. If the server refuses, the next command opens its own."""
        if self._place_ahead.acquire(blocking=False):
            try:
                self._ahead.append(self._transport.open_session(timeout=_REFUSED_S))
            except LOST:
                self._place_ahead.release()

    def _take_ahead(self) -> paramiko.Channel | None:
        try:
            channel = self._ahead.pop()
        except IndexError:
            return None
        self._place_ahead.release()
        return None if channel.closed else channel


def _feed_bounded(feed: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Return a function that passes a channel's data on to `feed`. If a server sends more than its window allows, the function
    closes the connection before the memory is full."""

    def accept(channel: Any, message: Any) -> None:
        if len(channel.in_buffer) + len(channel.in_stderr_buffer) > 2 * WINDOW:
            channel.transport.close()
        else:
            feed(channel, message)

    return accept


class _Packetizer(paramiko.packet.Packetizer):
    def read_all(self, n: int, check_rekey: bool = False) -> bytes:  # paramiko's signature
        if n > MAX_PACKET:
            raise paramiko.SSHException(f"the server announces a packet of {n} bytes; the limit is {MAX_PACKET}")
        return super().read_all(n, check_rekey)


class _Transport(paramiko.Transport):
    # paramiko has no public way to set either.
    _active_check_timeout = 1.0  # its ten checks a second for the end of the connection are too many with 64 nodes
    _channel_handler_table: ClassVar[dict[int, Any]] = {
        number: _feed_bounded(take) if number in {MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA} else take
        for number, take in vars(paramiko.Transport)["_channel_handler_table"].items()
    }


def _negotiate(node: Node, sock: socket.socket, kind: str, timeout_s: float) -> paramiko.Transport:
    """Return an encrypted connection. The server uses a host key of that kind if it has one."""
    transport = _Transport(sock, default_window_size=WINDOW, packetizer_class=_Packetizer)
    transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = timeout_s
    transport.set_keepalive(_ALIVE_EVERY_S)
    options = transport.get_security_options()
    options.ciphers = sorted(options.ciphers, key=lambda name: "gcm" not in name)  # three times as fast as the default
    options.key_types = sorted(options.key_types, key=lambda name: name not in _SIGNED.get(kind, (kind,)))
    agreed = threading.Event()
    transport.start_client(event=agreed)
    if not agreed.wait(timeout_s):
        transport.close()
        raise make_no_answer_error(node, f"no SSH handshake within {timeout_s:g} s")
    if not transport.is_active():
        error = transport.get_exception()
        raise make_no_answer_error(node, str(error) if error else "the SSH handshake was broken off") from error
    return transport


def _authenticate(node: Node, transport: paramiko.Transport, key: paramiko.PKey, file: Path) -> None:
    try:
        more = transport.auth_publickey(node.user, key)
    except paramiko.AuthenticationException as error:
        if str(error) == "Authentication timeout.":
            raise make_no_answer_error(node, f"no answer to the key within {transport.auth_timeout:g} s") from error
        raise KeyRefused(
            f"{node.label} ({node.address}:{node.port}) refuses the key {file} for user {node.user}",
            hint="the node was made for another workspace or key; type gpucourse deploy again to give it this one",
        ) from error
    except LOST as error:
        raise make_no_answer_error(node, str(error) or "the connection was closed during authentication") from error
    if more or not transport.is_authenticated():
        name = node.typed or f"{node.user}@{node.address}"
        raise SecondFactor(
            f"{node.label} accepts the key {file}, but then asks for a second factor ({', '.join(more) or 'unknown'}), "
            "which a program cannot type",
            hint=f"if it is the login node of a Slurm cluster: gpucourse deploy N --target slurm --login {name}, which uses a "
            "connection that you opened; otherwise ask its administrator for a login by key alone",
        )


def fetch_host_key(node: Node, timeout_s: float = CONNECT_S) -> tuple[str, str]:
    """Return the host key of the server at a node's address, as (`ssh-ed25519 AAAA...`, its SHA256 fingerprint). Raises
    UnreachableError.

    Nothing secret is sent to that server, because a person still has to decide whether it is the right key.
    """
    with _closed_on_error(dial(node, timeout_s)) as sock:
        transport = _negotiate(node, sock, "ssh-ed25519", timeout_s)
    key = transport.get_remote_server_key()
    transport.close()
    return f"{key.get_name()} {key.get_base64()}", fingerprint(key.asbytes())


def _make_key_error(file: Path, error: Exception, *, is_own: bool) -> MissingError:
    hint = "type gpucourse deploy again: it makes the key if there is none"
    if not is_own:
        has_passphrase = isinstance(error, paramiko.PasswordRequiredException)
        hint = "a key with a passphrase cannot be used: " if has_passphrase else ""
        hint += "name another with --key, or leave --key out to use this workspace's own"
    return MissingError(f"the private key {file} cannot be read: {error}", hint=hint)


def dial(node: Node, timeout_s: float) -> socket.socket:
    """Return a connection to a node's SSH server, through the node's proxy command if it has one. Raises UnreachableError."""
    if node.proxy:
        return _connect_through(node)
    try:
        sock = socket.create_connection((node.address, node.port), timeout_s)
    except OSError as error:
        raise make_no_answer_error(node, str(error.strerror or error).lower()) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def make_no_answer_error(node: Node, reason: str) -> NoAnswer:
    """Return the error for a node whose SSH server does not answer."""
    return NoAnswer(
        f"{node.label} does not answer SSH at {node.address}:{node.port}: {reason}",
        hint="gpucourse status shows which nodes are alive; gpucourse deploy brings a dead one back",
    )


def proxy_command(node: Node) -> list[str]:
    """Return the words of a node's proxy command, with %h, %p, %r and %% replaced as in OpenSSH. Raises ValueError if it is not
    a command."""
    tokens = {"%h": node.address, "%p": str(node.port), "%r": node.user, "%%": "%"}
    if not node.proxy.strip() or "\0" in node.proxy:
        raise ValueError("it names no program")
    return [re.sub("%.", lambda match: tokens.get(match.group(), match.group()), word) for word in shlex.split(node.proxy)]


def _connect_through(node: Node) -> socket.socket:
    """Return a socket whose other end is the node's proxy command. The command ends when the socket is closed.

    Raises UnreachableError if the command cannot be started. If the command cannot reach the node, it closes its end, and the
    SSH handshake fails.
    """
    try:
        words = proxy_command(node)
    except ValueError as error:  # only if a person edited the record: the settings refuse such a command
        raise UnreachableError(
            f"{node.label} does not answer: its proxy command cannot be used: {error}",
            hint="fix ssh_proxy_command in gpucourse.yaml, then type deploy again",
        ) from error
    near_end, far_end = socket.socketpair()
    try:
        end = far_end.fileno()
        child = subprocess.Popen(words, stdin=end, stdout=end, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        near_end.close()
        raise UnreachableError(
            f"{node.label} does not answer: the proxy command {words[0]} cannot be started: {error.strerror or error}",
            hint="fix ssh_proxy_command in gpucourse.yaml",
        ) from error
    finally:
        far_end.close()
    threading.Thread(target=child.wait, name=f"proxy-{node.name}", daemon=True).start()  # so that the process leaves no zombie
    return near_end
