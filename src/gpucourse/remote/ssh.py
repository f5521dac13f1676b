"""SSH to one node. The only module that uses paramiko: pinned host key, one key file, no agent, and a limit to every wait."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

if "invoke" not in sys.modules:
    sys.modules["invoke"] = None  # type: ignore[assignment]  # paramiko would import it for ssh_config, which is never read
    import paramiko

    del sys.modules["invoke"]
else:
    import paramiko

from gpucourse.errors import MissingError, UnreachableError
from gpucourse.model.node import Node
from gpucourse.outside.files import read_named
from gpucourse.ports import CommandResult
from gpucourse.remote.exchange import CHANNELS, Exchange
from gpucourse.remote.keys import fingerprint, make_other_key_error, parse_pinned_keys
from gpucourse.remote.login_shell import Request, Stdin
from gpucourse.remote.patience import ANSWER_S, CONNECT_S, REST_S
from gpucourse.remote.sockets import ArrivedData, LimitedEvent, RegularChecks, dial, make_no_answer_error

logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)

WINDOW = 4 << 20
"""Bytes that may be under way on one channel."""
REFUSED_S = 5.0
"""The time that a server may refuse another channel before that counts as final."""
MOST_KEY = 1 << 16
"""Bytes of a file with a private key."""

_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
_SIGNED = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}  # the signature algorithm that a key of that kind uses today
_LOST = (OSError, EOFError, paramiko.SSHException)


class KeyRefused(UnreachableError):
    """The node answers, and does not accept our key."""


class SshTransport:
    """Makes links with one private key, or with a node's own key if its record names one.

    If a link hears nothing for `alive_every_s`, it asks the peer for a sign of life, and is closed without one in `patience_s`.
    """

    def __init__(self, key_file: Path, *, alive_every_s: float = 15.0, patience_s: float = 10.0) -> None:
        self._key_file = key_file
        self._checks, self._patience_s = RegularChecks(alive_every_s), patience_s
        self._keys: dict[Path, paramiko.PKey] = {}
        self._lock = threading.Lock()

    def connect(self, node: Node, *, timeout_s: float = CONNECT_S) -> SshLink:
        """Connect and authenticate, with the node's host key pinned. Raises UnreachableError; MissingError without a key."""
        file = Path(node.key) if node.key else self._key_file
        key, pinned = self._private_key(file), parse_pinned_keys(node)
        sock = dial(node, timeout_s)
        try:
            transport = _handshake(node, sock, pinned, timeout_s)
            _authenticate(node, transport, key, file, timeout_s)
        except BaseException:
            sock.close()
            raise
        return SshLink(node, transport, checks=self._checks, patience_s=self._patience_s)

    def _private_key(self, file: Path) -> paramiko.PKey:
        with self._lock:
            if file not in self._keys:
                try:
                    own = file == self._key_file
                    read_named(file, MOST_KEY)  # reading a device or a pipe would never end
                    self._keys[file] = (
                        paramiko.Ed25519Key.from_private_key_file(str(file)) if own else paramiko.PKey.from_path(file)
                    )
                except (OSError, ValueError, TypeError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
                    raise _unusable(file, error, own=file == self._key_file) from error
            return self._keys[file]


class SshLink:
    """A live connection to one node, at most eight commands at a time. A login shell starts for the first one, and for each
    that runs at the same time: a shell that has run its command waits for the next."""

    def __init__(self, node: Node, transport: paramiko.Transport, *, checks: RegularChecks, patience_s: float) -> None:
        self.node = node
        self._transport = transport
        self._places = threading.BoundedSemaphore(CHANNELS)
        self._waiting: list[paramiko.Channel] = []
        self._closed = threading.Event()
        self._patience_s, self._heard, self._asking = patience_s, 0, False
        self._checks = checks
        checks.add(self._check)

    @property
    def alive(self) -> bool:
        """Whether the connection is still open, as far as is known without asking the peer."""
        return self._transport.is_active()

    def run(self, command: str, *, stdin: Stdin = b"", timeout_s: float = ANSWER_S) -> CommandResult:
        """Run a shell command in the node's home folder, feed it `stdin`, and return everything that it printed.

        `timeout_s` bounds the silence: the longest wait for the next byte, sent or received, or for the exit code. The whole
        answer, of at most `exchange.MAX_ANSWER` bytes, may take twice as long, counted from the end of the input. Raises
        UnreachableError if the connection is lost or the silence is too long; then it is unknown whether the command ran.
        """
        with self._exchange(command, stdin, timeout_s) as exchange:
            stdout = exchange.answer()
            return CommandResult(code=exchange.code(), stdout=stdout, stderr=exchange.stderr())

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = ANSWER_S) -> Iterator[Iterator[bytes]]:
        """Run a command and yield its standard output in pieces as they arrive, until it ends.

        Raises UnreachableError when the connection is lost, when nothing comes for `silence_s`, or when the command ends with a
        code other than 0 (with the end of its standard error). If the block ends earlier, the command has REST_S to end.
        """
        with self._exchange(command, stdin, silence_s) as exchange:
            yield exchange.stdout_then_code()
            exchange.read_rest(REST_S)

    def close(self) -> None:
        """Drop the connection. What was started detached on the node keeps running."""
        self._closed.set()
        self._checks.drop(self._check)
        for channel in self._waiting:
            with suppress(*_LOST):
                channel.shutdown_write()  # its shell ends by itself
        self._transport.close()

    @contextmanager
    def _exchange(self, command: str, stdin: Stdin, silence_s: float) -> Iterator[Exchange]:
        if not self._places.acquire(timeout=max(silence_s, 0.001)):
            raise UnreachableError(
                f"{self.node.label}: all {CHANNELS} channels of the connection were busy for {silence_s:g} s"
            )
        try:
            channel, exchange = self._begin(Request(command, stdin), silence_s)
            try:
                yield exchange
            finally:
                if exchange.can_go_on:
                    self._waiting.append(channel)
                else:
                    exchange.close()
        finally:
            self._places.release()

    def _begin(self, request: Request, silence_s: float) -> tuple[paramiko.Channel, Exchange]:
        """Start the command in a waiting shell, else in a new one: if the server or the login shell allows each shell only one
        command, the waiting shells have ended."""
        while (channel := self._take_waiting()) is not None:
            exchange = Exchange(self.node.label, channel, request, silence_s, lost=_LOST, waits=True)
            try:
                if exchange.begins():
                    return channel, exchange
            except BaseException:
                exchange.close()
                raise
            exchange.close()
        channel = self._open(request.first_line(), silence_s)
        return channel, Exchange(self.node.label, channel, request, silence_s, lost=_LOST)

    def _take_waiting(self) -> paramiko.Channel | None:
        with suppress(IndexError):
            return self._waiting.pop()
        return None

    def _open(self, line: str, timeout_s: float) -> paramiko.Channel:
        deadline = time.monotonic() + timeout_s
        try:
            channel = self._session(timeout_s)
            channel.event = LimitedEvent(timeout_s)
            channel.exec_command(line)
        except _LOST as error:
            if isinstance(error, TimeoutError) or time.monotonic() >= deadline:  # a channel that opens later would have no user
                self._transport.close()
            raise _make_lost_error(self.node, error) from error
        return channel

    def _session(self, timeout_s: float) -> paramiko.Channel:
        """Open a channel. A busy server still counts, for a moment, one that we have just closed, and refuses the next."""
        deadline = time.monotonic() + min(timeout_s, REFUSED_S)
        while True:
            try:
                return self._transport.open_session(timeout=timeout_s)
            except paramiko.SSHException:  # of several refusals at the same moment, paramiko reports the reason of one only
                if not self.alive or time.monotonic() >= deadline or self._closed.wait(0.05):
                    raise

    def _check(self) -> bool:
        """Return whether the connection is open. If no command has heard from the peer since the last check, another thread
        sends it a request, because that may need time."""
        heard, before = getattr(self._transport, "heard", 0), self._heard
        self._heard = heard
        if heard == before and self.alive and not self._asking:
            self._asking = True
            threading.Thread(target=self._ask, name=f"ssh-ask-{self.node.name}", daemon=True).start()
        return self.alive

    def _ask(self) -> None:
        """Ask the peer for a sign of life; close the connection if none comes within the patience."""
        guard = threading.Timer(self._patience_s, self._transport.close)
        guard.daemon = True
        guard.start()
        try:
            self._transport.global_request("keepalive@openssh.com", wait=True)
        except _LOST:
            self._transport.close()
        finally:
            guard.cancel()
            self._asking = False


def _feed_bounded(feed: Callable[[Any, Any], None], channel: Any, message: Any) -> None:
    """Accept data of a channel. If a server sends more than its window allows, its connection is closed before the memory is
    full."""
    channel.transport.heard += 1
    if len(channel.in_buffer) + len(channel.in_stderr_buffer) > 2 * WINDOW:
        channel.transport.close()
    else:
        feed(channel, message)


class _Transport(paramiko.Transport):
    # paramiko has no public way to set either.
    _channel_handler_table: ClassVar[dict[int, Any]] = {
        number: partial(_feed_bounded, take) if take.__name__.startswith("_feed") else take
        for number, take in vars(paramiko.Transport)["_channel_handler_table"].items()
    }

    # How often its thread wakes up when nothing arrives: paramiko's ten times a second is a lot with 64 nodes.
    _active_check_timeout = 1.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._channels = _OpenChannels(self)
        self.packetizer.start_handshake = lambda _timeout: None  # type: ignore[assignment]  # `_negotiate` has the limit
        self.heard = 0  # pieces of data that came on its channels


class _OpenChannels(paramiko.transport.ChannelMap):
    """Channels with their connection set from the start: otherwise paramiko's thread fails if the connection ends just then."""

    def __init__(self, transport: paramiko.Transport) -> None:
        super().__init__()
        self._transport = transport

    def put(self, chanid: int, chan: paramiko.Channel) -> None:
        chan.transport, chan.in_buffer = self._transport, ArrivedData()  # type: ignore[assignment]  # what of it is used
        super().put(chanid, chan)


def _handshake(node: Node, sock: socket.socket, pinned: Sequence[tuple[str, str]], timeout_s: float) -> paramiko.Transport:
    kind = pinned[0][0]
    try:
        transport = _negotiate(node, sock, kind, timeout_s, only=True)
    except _OtherKind as error:
        raise make_other_key_error(node, f"no {kind} key") from error
    shown = transport.get_remote_server_key()
    if (shown.get_name(), shown.get_base64()) not in pinned:
        transport.close()
        raise make_other_key_error(node, fingerprint(shown.asbytes()))
    return transport


class _OtherKind(UnreachableError):
    """The server has no host key of the requested kind."""


def _negotiate(node: Node, sock: socket.socket, kind: str, timeout_s: float, *, only: bool = False) -> paramiko.Transport:
    """Return a connection that is encrypted, with a host key of that kind, or, unless `only` is set, of another kind if need
    be."""
    transport = _Transport(sock, default_window_size=WINDOW)
    transport.banner_timeout = transport.handshake_timeout = timeout_s
    transport.auth_timeout = transport.channel_timeout = timeout_s
    options = transport.get_security_options()
    options.ciphers = [c for c in _CIPHERS if c in options.ciphers] + [c for c in options.ciphers if c not in _CIPHERS]
    wanted = [name for name in _SIGNED.get(kind, (kind,)) if name in options.key_types]
    if wanted:
        options.key_types = wanted if only else [*wanted, *(name for name in options.key_types if name not in wanted)]
    agreed = threading.Event()
    transport.start_client(event=agreed)
    if not agreed.wait(timeout_s):
        transport.close()
        raise make_no_answer_error(node, f"no SSH handshake within {timeout_s:g} s")
    if not transport.is_active():
        error = transport.get_exception()
        if isinstance(error, paramiko.ssh_exception.IncompatiblePeer) and "no acceptable host key" in str(error):
            raise _OtherKind(f"{node.label} has no host key of the kind {kind}") from error
        raise make_no_answer_error(node, str(error) if error else "the SSH handshake was broken off") from error
    return transport


def _authenticate(node: Node, transport: paramiko.Transport, key: paramiko.PKey, file: Path, timeout_s: float) -> None:
    try:
        transport.auth_publickey(node.user, key)
    except paramiko.AuthenticationException as error:
        transport.close()
        if str(error) == "Authentication timeout.":
            raise make_no_answer_error(node, f"no answer to the key within {timeout_s:g} s") from error
        raise KeyRefused(
            f"{node.label} ({node.address}:{node.port}) refuses the key {file} for user {node.user}",
            hint="the node was made for another workspace or key; type gpucourse deploy again to give it this one",
        ) from error
    except _LOST as error:
        transport.close()
        raise make_no_answer_error(node, str(error) or "the connection was closed during authentication") from error


def fetch_host_key(node: Node, timeout_s: float = CONNECT_S) -> tuple[str, str]:
    """Return the host key that answers at a node's address, as (`ssh-ed25519 AAAA...`, its SHA256 fingerprint). Nothing is sent
    to it.

    A person has to decide whether it is the right one. Raises UnreachableError.
    """
    sock = dial(node, timeout_s)
    try:
        transport = _negotiate(node, sock, "ssh-ed25519", timeout_s)
    except BaseException:
        sock.close()
        raise
    key = transport.get_remote_server_key()
    transport.close()
    return f"{key.get_name()} {key.get_base64()}", fingerprint(key.asbytes())


def _unusable(file: Path, error: Exception, *, own: bool) -> MissingError:
    hint = "type gpucourse deploy again: it makes the key if there is none"
    if not own:
        locked = isinstance(error, paramiko.PasswordRequiredException)
        hint = "a key with a passphrase cannot be used: " if locked else ""
        hint += "name another with --key, or leave it out to use this workspace's own"
    return MissingError(f"the private key {file} cannot be read: {error}", hint=hint)


def _make_lost_error(node: Node, error: BaseException) -> UnreachableError:
    return UnreachableError(
        f"{node.label}: the connection was lost ({str(error) or type(error).__name__})",
        hint="gpucourse status shows which nodes are alive; what was started on the node keeps running",
    )
