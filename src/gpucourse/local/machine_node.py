"""A separate machine, seen from its host: a port on 127.0.0.1 that leads to the machine's sshd."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from gpucourse.local import environment, health, layout, processes, server
from gpucourse.local.hosted import HostedNode, Spec
from gpucourse.local.machines.daemons import PATH
from gpucourse.local.namespace_client import NamespaceClient, NamespaceFailed

_SSH = 22
_CHUNK = 1 << 18

logger = logging.getLogger(__name__)


class MachineNode(HostedNode):
    """A machine in the namespace. It exists from `open` until `end`."""

    def __init__(self, folder: Path, spec: Spec, namespace: NamespaceClient) -> None:
        super().__init__(folder, spec)
        self._namespace = namespace
        self._jumps: dict[int, asyncio.Server] = {}
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Listen for logins. Boot the machine or, if it is on, start its missing daemons."""
        await super().open()
        (self._folder / layout.SHARED).mkdir(mode=0o755, exist_ok=True)
        await self._namespace.ask("on", machine=self._machine())

    async def _listen(self, port: int) -> tuple[int, Callable[[], None]]:
        acceptor = await asyncio.start_server(self.attend, server.ADDRESS, port)
        return acceptor.sockets[0].getsockname()[1], acceptor.close

    async def lead_to(self, machines: Iterable[MachineNode]) -> None:
        """Make the other machines' ports on 127.0.0.1 work inside this machine as well, because `ssh -J` connects to them from
        here.

        A port that is in use is left out, because every machine can also be reached directly.
        """
        async with self._turn:
            for machine in machines:
                if machine is self or machine.port in self._jumps:
                    continue
                try:
                    line = await self._namespace.make_socket(self.spec.name)
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    line.bind((server.ADDRESS, machine.port))
                    self._jumps[machine.port] = await asyncio.start_server(machine.attend, sock=line)
                except (OSError, NamespaceFailed) as error:
                    logger.info("no route from %s to %s: %s", self.spec.name, machine.spec.name, error)

    async def cut_power(self) -> None:
        """Cut the machine's power. Its disk remains."""
        await self._namespace.ask("off", name=self.spec.name)
        self._close_jumps()

    def close(self) -> None:
        """Accept no more logins."""
        super().close()
        self._close_jumps()  # their sockets would keep alive the network of a machine that is off

    def _close_jumps(self) -> None:
        for jump in self._jumps.values():
            jump.close()
        self._jumps.clear()

    async def end(self) -> None:
        """Cut the machine's power, end its connections, and make the namespace forget the machine."""
        await super().end()
        if self._namespace.alive:
            with contextlib.suppress(NamespaceFailed):  # a namespace that has ended contains no machine
                await self._namespace.ask("off", name=self.spec.name, forget=True)

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay a connection between a client and the machine's sshd until it ends."""
        self._connections.add(writer.transport)
        try:
            line = await self._namespace.dial(self.spec.addresses[self.spec.name], _SSH)
            inner_reader, inner_writer = await asyncio.open_connection(sock=line, limit=_CHUNK)
            try:
                await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))
            finally:
                inner_writer.close()
        except (TimeoutError, OSError, NamespaceFailed) as error:
            logger.info("%s does not answer: %s", self.spec.name, error)
        finally:
            writer.close()
            self._connections.discard(writer.transport)

    def _machine(self) -> dict[str, object]:
        spec = self.spec
        return {
            "name": spec.name,
            "role": spec.role,
            "address": spec.addresses[spec.name],
            "addresses": spec.addresses,
            "gpus": spec.gpus,
            "link": spec.link,
            "slurm": spec.slurm,
            "layer": spec.layer,
            "user": spec.user,
            "user_id": os.getuid(),
            "group_id": os.getgid(),
            "home": str(layout.home(self._folder, spec.name)),
            "shared": str(self._folder / layout.SHARED),
            "programs": _programs(spec.python),
            "host_key": layout.host_key(self._folder, spec.name).read_text(encoding="utf-8"),
            "sshd_config": _sshd_config(spec),
            "marks": {processes.STACK: spec.uid, processes.NODE: f"{spec.uid}/{spec.name}"},
        }


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _programs(python: str) -> list[str]:
    """Return the folders outside /usr that the interpreter needs: its virtual environment, and the Python that it was made
    from."""
    prefixes = {Path(python).parent.parent, Path(os.path.realpath(python)).parent.parent, Path(sys.base_prefix)}
    folders = sorted(path for path in prefixes if not path.is_relative_to("/usr") and len(path.parts) > 1)
    return [str(path) for path in folders if not any(parent in path.parents for parent in folders)]


def _sshd_config(spec: Spec) -> str:
    """Return the configuration for a real sshd, which names the node in its first line to a client. Its sessions are like those
    of any simulated node."""
    marks = {
        "PATH": f"{Path(spec.python).parent}:{PATH}",
        "GPUCOURSE_NODE": spec.name,
        processes.STACK: spec.uid,
        processes.NODE: f"{spec.uid}/{spec.name}",
        **({environment.ROOT: spec.root} if spec.root else {}),
    }
    lines = {
        "HostKey": "/etc/ssh/host_key",
        "PidFile": "/run/sshd.pid",
        "AuthorizedKeysFile": ".ssh/authorized_keys",
        "AllowUsers": spec.user,
        "PermitRootLogin": "prohibit-password",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "UsePAM": "no",
        "AllowAgentForwarding": "no",  # as on simulated nodes that are not machines: no command there needs the learner's keys
        "StrictModes": "no",  # the folders above belong to this computer, which sets their modes
        "UseDNS": "no",
        "PrintMotd": "no",
        "PrintLastLog": "no",
        "MaxStartups": "100:30:200",
        "MaxSessions": "100",
        "VersionAddendum": health.banner(spec.uid, spec.name),
        "AcceptEnv": environment.list_accepted_patterns(),
        "SetEnv": " ".join(f'{name}="{value}"' for name, value in marks.items()),
        "Subsystem": "sftp internal-sftp",
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items())
