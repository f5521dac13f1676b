"""A node that lies: a real SSH server on loopback that can answer every request of gpucourse.

It answers every request but one like an honest node. The answer to that request is a lie that the test chooses. The server runs
no command and has no files.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import shlex
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from gpucourse.remote.agent import frames
from gpucourse.remote.agent.frames import frame
from gpucourse.remote.login_shell import NO_INPUT
from tests.waiting import STUCK_S

MESSAGES = {  # words of the command that makes the request, in the order in which they are searched for
    "machine": 'importlib.util.find_spec("torch")',
    "belongings": '"labs"',
    "store": "cd ./.gpucourse/store",
    "install": "agent-new.XXXXXX",
    "take": "tar -xf -",
    "route": "ip -o route get",
    "programs": "command -v sbatch",
}
_VERB = re.compile(r'-I -S "\$HOME"/\.gpucourse/agent-\w+ (\w+) ?(.*)$', re.DOTALL)
_LATER_S = 0.05
_NO_AGENT = 97


@dataclass(frozen=True, kw_only=True)
class Lie:
    """The answer to `message` instead of the truth: `out` and `err`, then the exit code.
    `slurm`: the lie is about a cluster or a run under Slurm.
    """

    name: str
    message: str
    out: bytes = b""
    err: bytes = b""
    code: int = 0
    slurm: bool = False


class Liar:
    """The server. `lie`: the current lie. `asked`: the number of requests for each message."""

    def __init__(self, key: Path) -> None:
        self.lie: Lie | None = None
        self.asked: list[str] = []
        self.port = 0
        self.ended = True  # whether runs have ended
        self.scheduled = False  # whether Slurm carries out the newest run
        self.installed = True  # whether the agent is there
        self._key = key
        self._connections: list[asyncssh.SSHServerConnection] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="liar", daemon=True)

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the host key, in OpenSSH's notation."""
        return str(asyncssh.read_private_key(self._key).get_fingerprint())

    def start(self) -> None:
        """Listen, on a port that the kernel chooses."""
        self._thread.start()
        assert self._ready.wait(STUCK_S)

    def stop(self) -> None:
        """Close every connection and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STUCK_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        listener = self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()
        listener.close()
        for connection in self._connections:
            connection.abort()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(_LATER_S))
        self._loop.close()

    async def _listen(self) -> asyncssh.SSHAcceptor:
        acceptor = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=lambda: _AnyKey(self._connections),
            server_host_keys=[str(self._key)],
            process_factory=self._attend,
            encoding=None,
            line_editor=False,
            compression_algs=None,
            gss_host=None,
            config=None,
        )
        self.port = acceptor.get_port()
        return acceptor

    async def _attend(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        try:
            await self._answer(process)
        except (OSError, asyncssh.Error, asyncio.IncompleteReadError):
            return

    async def _answer(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command, word = _unwrap(process.command or "")
        message, arguments = classify(command)
        self.asked.append(message)
        lie = self.lie if self.lie is not None and self.lie.message == message else None
        process.stdout.write(word + b"-out")
        process.stderr.write(word + b"-err")
        stdin = b"" if command.startswith(NO_INPUT) else bytes(await process.stdin.read())
        if message == "cancel":
            self.ended = True
        if message == "start" and stdin:
            self.scheduled = "slurm" in json.loads(stdin)
        self.installed = self.installed or message == "install"
        if lie is None:
            lacks = not self.installed and message == "probe"
            code = _NO_AGENT if lacks else 0
            process.stdout.write(b"" if lacks else self._truth(message, arguments, stdin))
        else:
            code = lie.code
            process.stdout.write(lie.out)
            process.stderr.write(lie.err)
        process.stdout.write(word + b"-end%03d" % code)
        process.stderr.write(word + b"-end%03d" % code)
        process.exit(code)

    def _truth(self, message: str, arguments: list[str], stdin: bytes) -> bytes:
        return TRUTH.get(message, nothing)(Question(arguments, stdin, self.ended, self.scheduled))


class _AnyKey(asyncssh.SSHServer):  # type: ignore[misc]  # it has no types
    """Accepts every login."""

    def __init__(self, connections: list[asyncssh.SSHServerConnection]) -> None:
        self._connections = connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connections.append(conn)

    def begin_auth(self, username: str) -> bool:
        return bool(username)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return bool(username and key)


def _unwrap(line: str) -> tuple[str, bytes]:
    """Return the command in the line that the client sends, and the word that forms its marks."""
    *_, first, second, escaped = shlex.split(line)
    plain = re.sub(rb"\\0([0-7]{3})", lambda match: bytes([int(match[1], 8)]), escaped.encode())
    return plain.decode("utf-8", "surrogateescape"), (first + second).encode()


def classify(command: str) -> tuple[str, list[str]]:
    """Return what a command requests (the agent's verb, or a word of MESSAGES), and the verb's arguments."""
    if match := _VERB.search(command):
        return match[1], shlex.split(match[2])
    return next((message for message, words in MESSAGES.items() if words in command), "other"), []


@dataclass(frozen=True)
class Question:
    """The request to an honest node."""

    arguments: list[str]
    stdin: bytes
    ended: bool
    scheduled: bool = False

    @property
    def document(self) -> Any:
        """Return the JSON document in its first argument."""
        return json.loads(self.arguments[0])


END: dict[str, Any] = {"code": 0, "reason": "exited", "seconds": 1.5, "killed": 0}
RANK: dict[str, Any] = {"rank": 0, "code": 0, "at": 1.0}
JOB = {"row": 0, "job": "1", "file": "x", "state": "COMPLETED", "code": 0, "asked": False, "restarts": 0}
PROBE: dict[str, Any] = {
    "python_version": "3.11.2",
    "cores": 2,
}
CLUSTER: dict[str, Any] = {
    "partitions": [
        {"name": "gpu", "default": True, "open": True,
         "nodes": [{"name": "c1", "state": "idle", "gpus": 1, "cores": 2, "reason": ""}]}
    ],
}  # fmt: skip
MACHINE: dict[str, Any] = {
    "python": "/usr/bin/python3", "version": "3.11.2", "torch": True, "gpus": [], "hostname": "honest", "boot": "b",
    "folder": "/home/u", "inode": 7, "device": 8, "disk_free_bytes": 1 << 36, "addresses": {"eth0": "10.0.0.5"},
}  # fmt: skip


def as_json(value: object) -> bytes:
    """Return a line of JSON."""
    return json.dumps(value).encode() + b"\n"


def nothing(_question: Question) -> bytes:
    """Return no output."""
    return b""


def probe(question: Question, **changes: object) -> bytes:
    """Return the answer to a probe."""
    request = question.document
    modules = dict.fromkeys(request["modules"], "2.6")
    ports = [request["first_port"], request["first_port"] + 1]
    return as_json({**PROBE, "modules": modules, "free_ports": ports, "clock": time.time(), **changes})


def follow(question: Question) -> bytes:
    """Return the log of one rank, how the rank ended, and how the run ended."""
    if not question.ended:
        return frame(frames.BEAT)
    offsets = {name: int(size) for name, _, size in (word.rpartition("=") for word in question.arguments[1:])}
    text = b"hello from rank 0\n"
    node = "c1" if question.scheduled else ""
    at = min(offsets.get(f"{node}/0", 0), len(text))
    log = frame(frames.NAMED, 1, 0, as_json({"node": node, "rank": 0})) + frame(frames.LOG, 1, at, text[at:])
    if question.scheduled:
        return log + frame(frames.END, 0, 0, as_json({**END, "jobs": [JOB], "ranks": []}))
    return log + frame(frames.RANK, 0, 0, as_json(RANK)) + frame(frames.END, 0, 0, as_json(END))


def parcel(
    files: dict[str, bytes],
    *,
    listing: dict[str, Any] | None = None,
    changed_files: Sequence[str] = (),
    add_members: Callable[[tarfile.TarFile], None] | None = None,
) -> bytes:
    """Return a tar as an honest agent sends it, with the members that `add_members` adds."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        honest: dict[str, Any] = {
            "refused": [],
            "same": [],
            "env": {"hostname": "honest"},
        }
        _add(tar, "listing.json", as_json({**honest, **(listing or {})}))
        for name, content in files.items():
            _add(tar, name, content)
        if add_members is not None:
            add_members(tar)
        _add(tar, "closing.json", as_json(list(changed_files)))
    return out.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def state(question: Question) -> bytes:
    """Return the state of each run."""
    answer = {"state": "ended", "exit": END} if question.ended else {"state": "running", "exit": None}
    return as_json(dict.fromkeys(question.arguments, answer))


TRUTH: dict[str, Callable[[Question], bytes]] = {
    "machine": lambda _question: as_json({**MACHINE, "clock": time.time()}),
    "belongings": lambda _question: as_json({"found": [], "others": 0}),
    "route": lambda _question: b"10.0.0.5 dev eth0 src 10.0.0.5 uid 0\n",
    "programs": lambda _question: b"/usr/bin/sbatch\n",
    "cluster": lambda _question: as_json(CLUSTER),
    "probe": probe,
    "start": lambda _question: as_json({"state": "running", "pid": 7}),
    "states": state,
    "follow": follow,
    "look": lambda _question: as_json({"0": "computing"}),
    "cancel": lambda question: as_json(dict.fromkeys(question.arguments[1:], "ended")),
    "pack": lambda _question: parcel({"files/result.txt": b"result\n"}),
}


@contextmanager
def liar(folder: Path) -> Iterator[Liar]:
    """Yield a node that lies, for the block."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    file = folder / "host_key"
    file.touch(mode=0o600)
    file.write_bytes(key.export_private_key())
    node = Liar(file)
    node.start()
    try:
        yield node
    finally:
        node.stop()
