"""A node that is a separate machine, from its host's side: a port on 127.0.0.1 that leads to the machine's sshd."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from gpucourse.local import environment, health, layout, processes, server
from gpucourse.local.hosted import Spec, prepare
from gpucourse.local.machines.daemons import PATH
from gpucourse.local.namespace_client import NamespaceClient, NamespaceFailed

_SSH = 22
_CHUNK = 1 << 18

logger = logging.getLogger(__name__)


class MachineNode:
    """A machine in the namespace, from `open` to `end`."""

    def __init__(self, folder: Path, spec: Spec, namespace: NamespaceClient) -> None:
        self.spec = spec
        self._folder = folder
        self._namespace = namespace
        self._door: asyncio.Server | None = None
        self.port = 0
        self._jumps: dict[int, asyncio.Server] = {}
        self._turn = asyncio.Lock()
        self._callers: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        """Boot or repair the machine, and accept logins: on its earlier port, or on a new one if that is in use."""
        self.port = prepare(self._folder, self.spec)
        (self._folder / layout.SHARED).mkdir(mode=0o755, exist_ok=True)
        if self._door is None:
            try:
                self._door = await asyncio.start_server(self.attend, server.ADDRESS, self.port)
            except OSError:
                self._door = await asyncio.start_server(self.attend, server.ADDRESS, 0)
            self.port = self._door.sockets[0].getsockname()[1]
        layout.write_json(layout.spec_file(self._folder, self.spec.name), {**asdict(self.spec), "port": self.port})
        self._close_jumps()  # of a machine that went off by itself
        await self._namespace.ask("on", machine=self._machine())

    async def lead_to(self, machines: Iterable[MachineNode]) -> None:
        """Have 127.0.0.1 on this machine lead to the others by their ports on this computer: `ssh -J` connects to those from
        the machine in the middle. A port that is not free there is left out: every machine can be reached directly, too."""
        async with self._turn:
            for machine in machines:
                if machine is self or machine.port in self._jumps:
                    continue
                try:
                    line = await self._namespace.listen(self.spec.name, machine.port)
                except NamespaceFailed as error:
                    logger.info("no way from %s to %s: %s", self.spec.name, machine.spec.name, error)
                    continue
                self._jumps[machine.port] = await asyncio.start_server(machine.attend, sock=line)

    def _close_jumps(self) -> None:
        """Close the jump ports: their sockets would keep the network of a machine that is off."""
        for jump in self._jumps.values():
            jump.close()
        self._jumps.clear()

    async def reopen(self, spec: Spec) -> None:
        """Use a new spec, and change the running machine accordingly; switch it off and on for what it boots with."""
        if _hardware(spec) != _hardware(self.spec):
            await self.power("off")
        self.spec = spec
        await self.open()

    async def power(self, way: str) -> None:
        """Cut the machine's power, or boot it again. Its disk stays."""
        if way == "off":
            await self._namespace.ask("off", name=self.spec.name)
            self._close_jumps()
        else:
            self._close_jumps()  # as in `open`
            await self._namespace.ask("on", machine=self._machine())

    def describe(self) -> dict[str, object]:
        """Return the node as a `model.node.Node`."""
        return {
            "name": self.spec.name,
            "role": self.spec.role,
            "address": server.ADDRESS,
            "port": self.port,
            "private_address": self.spec.addresses[self.spec.name],
            "user": self.spec.user,
            "gpus": self.spec.gpus,
            "instance_type": "simulated",
            "python": self.spec.python,
            "mode": "local",
            "host_key": server.public_part(layout.host_key(self._folder, self.spec.name)),
        }

    def close(self) -> None:
        """Accept no more logins."""
        if self._door is not None:
            self._door.close()
            self._door = None
        self._close_jumps()

    def drop(self) -> None:
        """End every connection."""
        for caller in list(self._callers):
            caller.close()

    async def end(self) -> None:
        """Remove the machine."""
        self.close()
        self.drop()
        if self._namespace.alive:
            with contextlib.suppress(NamespaceFailed):  # a namespace that has ended contains no machine
                await self._namespace.ask("off", name=self.spec.name, forget=True)

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on to the machine's sshd, both ways, until its end."""
        self._callers.add(writer)
        try:
            line = await self._namespace.dial(self.spec.addresses[self.spec.name], _SSH)
            inner_reader, inner_writer = await asyncio.open_connection(sock=line, limit=_CHUNK)
            self._callers.add(inner_writer)
            try:
                await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))
            finally:
                inner_writer.close()
                self._callers.discard(inner_writer)
        except (TimeoutError, OSError, NamespaceFailed) as error:
            logger.info("%s does not answer: %s", self.spec.name, error)
        finally:
            writer.close()
            self._callers.discard(writer)

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


def _hardware(spec: Spec) -> tuple[object, ...]:
    """Return the parts of a machine that cannot be changed while it is on: its cable, its devices, its programs."""
    return spec.link, spec.addresses.get(spec.name), spec.gpus, spec.layer


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _programs(python: str) -> list[str]:
    """Return the folders outside /usr that the interpreter is in: its environment's, and that of the Python it was made
    from."""
    prefixes = {Path(python).parent.parent, Path(os.path.realpath(python)).parent.parent, Path(sys.base_prefix)}
    outside = sorted(path for path in prefixes if not path.is_relative_to("/usr") and len(path.parts) > 1)
    return [str(path) for path in outside if not any(parent in path.parents for parent in outside)]


def _sshd_config(spec: Spec) -> str:
    """Return the configuration of a real sshd that names its node in its first line, with sessions like those of any simulated
    node."""
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
