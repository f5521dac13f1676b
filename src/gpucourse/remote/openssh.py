"""A link through the ssh command, with the learner's own configuration, agent, jump hosts and known hosts.

It uses a connection that the learner has already opened (ControlMaster), because a program cannot type a password or a second
factor. If there is none, it opens one that ends with the link.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpucourse.errors import NoAnswer, OtherHostKey, UnreachableError
from gpucourse.model.node import Node
from gpucourse.outside.names import printable
from gpucourse.remote.command_link import CommandLink
from gpucourse.remote.exchange import Exchange
from gpucourse.remote.login_shell import Request
from gpucourse.remote.patience import CONNECT_S
from gpucourse.remote.process_channel import ProcessChannel
from gpucourse.remote.ssh import KeyRefused
from gpucourse.remote.ssh_config import SshCommand, find_ssh_command

_LOST_CODE = 255  # ssh's exit code if ssh itself fails
_CHECK_S = 10.0
_END_S = 2.0
_MAX_PLACE = 60  # the path of a socket may have 103 bytes, and ssh appends 17 bytes while it creates the socket
_READY = b"ready\n"
# The learner's configuration may request features that are meant for a person: a terminal, forwarded ports, another command.
_ALWAYS = (
    "BatchMode=yes",
    "RequestTTY=no",
    "RemoteCommand=none",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
)
_REFUSED = re.compile(r"Permission denied \(([a-z0-9@.,-]+)\)")
_OTHER_KEY = ("REMOTE HOST IDENTIFICATION HAS CHANGED", "Offending .* key in")


def connect(node: Node, *, timeout_s: float = CONNECT_S, shared: str = "") -> OpenSshLink:
    """Connect to a node as `ssh` does when the learner types the node's name.

    Raises UnreachableError, with advice if a person has to type something, and MissingError without OpenSSH's client.
    """
    command = _find_command(node)
    words = [command.program, "-T", *_options(*_ALWAYS, f"ConnectTimeout={max(1, round(timeout_s))}"), *_name_key(node)]
    if (control := _find_open_connection(node, command)) is not None:
        return OpenSshLink(node, [*words, *control, *command.host], None, shared)
    master = _Master(node, command, words, timeout_s)
    return OpenSshLink(node, [*words, *_use(master.path), *command.host], master, shared)


def list_words(node: Node, options: Sequence[str]) -> list[str]:
    """Return the ssh command with these options for a person at a terminal, through an open connection if there is one."""
    command = _find_command(node)
    return [command.program, *options, *_name_key(node), *(_find_open_connection(node, command) or ()), *command.host]


class OpenSshLink(CommandLink):
    """A live connection to one node through the ssh command. Implements ports.Link.

    `words`: the ssh command before the command line for the node.
    `master`: the connection, if this link opened it.
    """

    def __init__(self, node: Node, words: Sequence[str], master: _Master | None, shared: str = "") -> None:
        super().__init__(node, shared)
        self._words, self._master, self._open = tuple(words), master, True
        self._latest: ProcessChannel | None = None

    @property
    def alive(self) -> bool:
        """Return whether the connection is still open, as far as this computer can tell."""
        if self._master is not None:
            return self._open and self._master.alive
        return self._open and (self._latest is None or not self._latest.lost)

    def close(self) -> None:
        """Close the connection, unless the learner opened it. Detached processes on the node keep running."""
        self._open = False
        if self._master is not None:
            self._master.close()

    def _start(self, line: str, _timeout_s: float, /) -> ProcessChannel:
        if not self.alive:
            raise UnreachableError(
                f"{self.node.label}: the connection was lost",
                hint="gpucourse status shows which nodes are alive; what was started on the node keeps running",
            )
        self._latest = _start_ssh(self.node, [*self._words, line])
        return self._latest


class _Master:
    """A connection to a node that other ssh commands share. The connection ends with this process, however the process ends.

    `path`: its socket.
    """

    def __init__(self, node: Node, command: SshCommand, words: Sequence[str], timeout_s: float) -> None:
        place = tempfile.gettempdir()
        place = place if len(place) < _MAX_PLACE else "/tmp"  # noqa: S108  # other users can neither guess the name nor use the socket
        # The socket needs no folder of its own, because ssh itself removes it, even if this process was killed.
        self.path = f"{place}/gpucourse-{secrets.token_hex(8)}"
        descriptor, name = tempfile.mkstemp(prefix="gpucourse-", suffix=".log", dir=place)
        os.close(descriptor)
        log = Path(name)
        self._end = threading.Event()
        request = Request("echo ready; exec cat", self._hold_input())
        options = ("-M", "-S", self.path, "-E", str(log), *_options("ControlPersist=no"))
        self._channel: ProcessChannel | None = None
        try:
            self._channel = _start_ssh(node, [*words, *options, *command.host, request.line])
            self._exchange = Exchange(node.label, self._channel, request, 2 * timeout_s)
            if next(self._exchange.stdout(), b"") != _READY:
                raise UnreachableError(f"{node.label}: the login shell does not run commands")  # noqa: TRY301
        except UnreachableError as error:
            text = log.read_text(encoding="utf-8", errors="replace")
            self.close()
            raise _explain(node, command, text) or error from error
        except BaseException:
            self.close()
            raise
        finally:
            log.unlink(missing_ok=True)

    @property
    def alive(self) -> bool:
        """Return whether the connection is open."""
        return self._channel is not None and self._channel.alive

    def close(self) -> None:
        """End the connection. ssh removes its socket."""
        self._end.set()
        if self._channel is not None:
            self._channel.close()
            self._channel.wait(_END_S)
        Path(self.path).unlink(missing_ok=True)  # ssh leaves the socket if it had to be killed

    def _hold_input(self) -> Iterator[bytes]:
        """Keep the input of the command on the node open until the end. Yields nothing, so nothing is sent."""
        self._end.wait()
        yield from ()


def _find_command(node: Node) -> SshCommand:
    return find_ssh_command(node.typed or f"{node.user}@{node.address}:{node.port}", os.environ)


def _name_key(node: Node) -> tuple[str, ...]:
    return ("-i", node.key) if node.key else ()


def _find_open_connection(node: Node, command: SshCommand) -> tuple[str, ...] | None:
    """Return ssh's options for using a connection that the learner has already opened, or None if there is none."""
    for path in command.controls:
        control = _use(path)
        if _run(node, [command.program, *control, "-O", "check", *command.host]).returncode == 0:
            return control
    return None


def _options(*options: str) -> tuple[str, ...]:
    return tuple(word for option in options for word in ("-o", option))


def _use(path: str) -> tuple[str, ...]:
    """Return the options with which ssh uses only an open connection. If that connection is gone, ssh must not open another
    one, because it would ask for something that a person has to type.
    """
    return ("-S", path, *_options("ControlMaster=no", *(() if "%" in path else ("ProxyCommand=false",))))


def _start_ssh(node: Node, words: Sequence[str]) -> ProcessChannel:
    try:
        return ProcessChannel(words, lost_code=_LOST_CODE, ends=True)
    except OSError as error:
        raise _make_start_error(node, error) from error


def _run(node: Node, words: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_CHECK_S, check=False)
    except OSError as error:
        raise _make_start_error(node, error) from error
    except subprocess.TimeoutExpired:  # its other end is frozen
        return subprocess.CompletedProcess(words, _LOST_CODE)


def _make_start_error(node: Node, error: OSError) -> UnreachableError:
    reason = error.strerror or str(error)
    return UnreachableError(f"{node.label}: ssh cannot be started: {reason}", hint="ssh -V shows whether it works")


def _explain(node: Node, command: SshCommand, log: str) -> UnreachableError | None:
    """Return the error that explains ssh's own messages about a failed connection, or None if there are none."""
    name = shlex.join(command.host_words)
    words = printable(" ".join(log.split()), 300)
    if match := _REFUSED.search(log):
        methods = match[1].split(",")
        by_person = [method for method in methods if method in {"keyboard-interactive", "password"}]
        if by_person:
            return KeyRefused(
                f"{node.label} asks for something that a program cannot type ({', '.join(by_person)})",
                hint=f"open a connection, which this program then uses: {command.opening}; then type this again. "
                f"To end it: {command.ending}",
            )
        return KeyRefused(
            f"{node.label} accepts none of your keys",
            hint=f"ssh {name} has to work without a prompt first: ssh-copy-id {name}; for a key with a passphrase: ssh-add",
        )
    if any(re.search(pattern, log) for pattern in _OTHER_KEY):
        return OtherHostKey(
            f"{node.label} shows a different host key from the one in your known hosts; nothing was sent to it",
            hint=f"ssh {name} names the file and the line; if you know that the machine was reinstalled, remove that line",
        )
    if "Host key verification failed" in log:
        return OtherHostKey(
            f"{node.label} is not in your known hosts, so its key cannot be verified; nothing was sent to it",
            hint=f"log in once with ssh {name}, and compare its fingerprint with the one that the cluster publishes",
        )
    if not words:
        return None
    return NoAnswer(f"{node.label} does not answer: {words}", hint=f"ssh {name} shows whether you reach it from here")
