"""The background process that hosts every simulated node of one stack. A driver starts it: `host.py LOCK READY`.

LOCK is the descriptor of the locked file `host.lock`. READY is the descriptor of a pipe that receives one newline when the
host listens. The working directory is the nodes' folder.

The host ends with its last node, on SIGTERM, or when its folder is deleted. Before it ends, it ends every process on its nodes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import logging.handlers
import os
import resource
import signal
import sys
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run by path: the package is found like the libraries, and this folder shadows none of them
    sys.path[:] = [*sys.path[1:], str(Path(__file__).parents[2])]

from gpucourse.local import layout, processes
from gpucourse.local.hosted import HostedNode, Spec, load_stored_specs
from gpucourse.local.machine_node import MachineNode
from gpucourse.local.namespace_client import NamespaceClient
from gpucourse.local.one_host.cluster import SlurmDaemons
from gpucourse.local.one_host.node import SlurmNode
from gpucourse.workspace.lock import is_same_file

_LOOK_S = 0.5
_IDLE_S = 20.0
_MAX_REQUEST = 1 << 20
_OPEN_FILES = 8192
_LOG_BYTES = 1 << 18

logger = logging.getLogger(__name__)


class Host:
    """The nodes of one stack. Drivers send the requests that change them."""

    def __init__(self, folder: Path, uid: str, lock: int) -> None:
        self.folder = folder
        self.uid = uid
        self.nodes: dict[str, HostedNode] = {}
        self._namespace = NamespaceClient(folder)
        self._cluster = SlurmDaemons(folder, uid)
        self._lock = lock
        self._awaited = False
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._changes = 0
        self._over = asyncio.Event()
        self._control: asyncio.Server | None = None

    async def run(self, ready: int) -> None:
        """Restore the nodes of an earlier host, listen, report that the host is ready, and serve until the end."""
        for spec in load_stored_specs(self.folder, self.uid):
            await self._restore(spec)
        await self._lead_from_heads()
        layout.remove(self.folder / layout.SOCKET)
        self._control = await asyncio.start_unix_server(self._attend, layout.SOCKET, limit=_MAX_REQUEST)
        self._sign()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, logger.info, "a terminal was closed")  # ignoring it would be inherited
        watching = asyncio.create_task(self._watch())
        _tell(ready)
        await self._over.wait()
        watching.cancel()

    def _sign(self) -> None:
        """Write host.json, which says that this process hosts the nodes of the folder."""
        layout.write_json(self.folder / layout.HOST, {"pid": os.getpid(), "uid": self.uid, "version": 1})

    def stop(self) -> None:
        """Accept no more requests and logins, end the machines and daemons, and let `run` return."""
        if self._control is not None:
            self._control.close()
        for node in self.nodes.values():
            node.close()
        self._namespace.end()
        self._cluster.end()
        self._over.set()

    async def _restore(self, spec: Spec) -> None:
        node = self.nodes[spec.name] = self._make(spec)
        file = layout.description(self.folder, spec.name)
        earlier = layout.read_json(file)
        await node.open()
        if earlier is not None and earlier != node.describe():
            layout.write_json(file, node.describe())

    def _make(self, spec: Spec) -> HostedNode:
        if spec.addresses:
            return MachineNode(self.folder, spec, self._namespace)
        return SlurmNode(self.folder, spec, self._cluster) if spec.slurm else HostedNode(self.folder, spec)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await reader.readline()).decode()
            if not line.endswith("\n"):
                return
            try:
                answer = await self._answer(*line.strip().split(" ", 1))
            except Exception as error:  # a request that fails must not take the other nodes down
                logger.exception("cannot do: %s", line.strip())
                answer = f"error {type(error).__name__}: {error}".replace("\n", " ")
            writer.write(f"{answer}\n".encode())
            await writer.drain()
        except ConnectionError:
            logger.info("the client has gone")
        finally:
            writer.close()

    async def _answer(self, verb: str, document: str) -> str:
        if verb == "ping":
            return "here"
        request = json.loads(document)
        if verb == "check":
            return f"found {json.dumps(await self._check())}"
        if verb in {"power", "run"}:
            return f"done {json.dumps(await self._control_machine(verb, request))}"
        self._changes += 1
        try:
            if verb == "add":
                return await self._add(Spec.read(request))
            if verb == "remove":
                await self._remove(str(request["uid"]), request)
                return "kept" if self.nodes or self._changes > 1 else self._end_with_the_last()
        finally:
            self._changes -= 1
        raise ValueError(f"there is no request {verb!r}")

    async def _check(self) -> dict[str, Any]:
        """Return what is wrong with each node that is more than an SSH server. The text is empty for a healthy node."""
        states = (await self._namespace.ask("check"))["found"] if self._namespace.alive else {}
        return {**await self._cluster.check(), **states}

    async def _control_machine(self, verb: str, request: dict[str, Any]) -> dict[str, Any]:
        """Cut a machine's power, or run a command in it as its root user. Return the machine's answer."""
        node = self.nodes.get(str(request["name"]))
        if isinstance(node, MachineNode) and verb == "run":
            return await self._namespace.ask("run", name=node.spec.name, argv=request["argv"])
        if isinstance(node, MachineNode):
            await node.cut_power()
            return {}
        raise ValueError(f"{request['name']} is not a separate machine")

    def _end_with_the_last(self) -> str:
        self._awaited = True
        self.stop()
        return "last"

    async def _add(self, spec: Spec) -> str:
        if spec.uid != self.uid:
            self.stop()  # the folder belongs to a new stack: this one's nodes are leftovers
            return "ending"
        async with self._turns[spec.name]:
            node = self.nodes.get(spec.name)
            if node is not None and node.spec.hardware != spec.hardware:
                await self._switch_off(spec.name)
                node = None
            node = node or self._make(spec)
            node.spec = spec
            await node.open()
            self.nodes[spec.name] = node
            await self._lead_from_heads()
            self._sign()
            return f"node {json.dumps(node.describe())}"

    async def _lead_from_heads(self) -> None:
        """Make every machine reachable through the head, as `ssh -J node0 node3` requires."""
        machines = [node for node in self.nodes.values() if isinstance(node, MachineNode)]
        for head in machines:
            if head.spec.role == "head":
                await head.lead_to(machines)

    async def _switch_off(self, name: str) -> None:
        """Make the port of every machine work inside the head, because `ssh -J node0 node3` connects from there."""
        await self.nodes.pop(name).end()
        await asyncio.to_thread(processes.end, processes.marker(processes.NODE, f"{self.uid}/{name}"))

    async def _remove(self, uid: str, request: dict[str, Any]) -> None:
        """Remove the nodes that a request selects, including a node of which only files are left.

        If the nodes belong to an earlier stack, only their processes end, because the files belong to this stack.
        """
        names = layout.select_nodes({*self.nodes, *layout.node_names(self.folder)}, request)
        async with AsyncExitStack() as turns:
            for name in names:
                await turns.enter_async_context(self._turns[name])
            for name in names if uid == self.uid else ():
                if (node := self.nodes.pop(name, None)) is not None:
                    await node.end()
            await asyncio.to_thread(self._end_and_remove, uid, names)

    def _end_and_remove(self, uid: str, names: list[str]) -> None:
        survivors = processes.end(*(processes.marker(processes.NODE, f"{uid}/{name}") for name in names))
        if survivors:  # the files stay: a repeated request finds the nodes by them
            raise RuntimeError(f"processes {', '.join(map(str, survivors))} do not end")
        for name in names if uid == self.uid else ():
            layout.remove_node_files(self.folder, name)

    async def _watch(self) -> None:
        """End the host if its folder is deleted or emptied from outside, or if no node is ever requested."""
        loop = asyncio.get_running_loop()
        busy = loop.time()
        while True:
            await asyncio.sleep(_LOOK_S)
            if self.nodes or self._changes:
                busy = loop.time()
            is_gone = not is_same_file(self._lock, self.folder / layout.LOCK) or not (self.folder / layout.SOCKET).exists()
            if is_gone or loop.time() - busy > _IDLE_S:
                self.stop()
                return

    def clean_up(self) -> None:
        """End every process of the stack and remove the files that only a running host needs. If no node is left, remove all
        files of the host."""
        processes.end(processes.marker(processes.STACK, self.uid))
        for path in layout.list_outside(self.folder, self.uid):
            layout.remove(path)
        if not is_same_file(self._lock, self.folder / layout.LOCK):
            return  # the folder belongs to another stack, or to none
        empty = not layout.node_names(self.folder)
        for name in layout.HOST_FILES if empty else (layout.SOCKET, layout.HOST):
            if name == layout.LOCK and self._awaited:
                continue  # the driver of the last node waits for this, to know that this process has ended
            layout.remove(self.folder / name)


def main(lock: int, ready: int) -> None:
    """Host the nodes of the working directory until they are gone."""
    os.set_inheritable(lock, False)
    os.set_inheritable(ready, False)
    _forget_signals()
    _raise_limit()
    os.umask(0o022)  # for the sessions; files that others must not read have their own mode
    folder, uid = Path.cwd(), os.environ[processes.STACK]
    log = logging.handlers.RotatingFileHandler(layout.LOG, maxBytes=_LOG_BYTES, backupCount=1, errors="backslashreplace")
    logging.basicConfig(level=logging.WARNING, handlers=[log], format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    processes.end(processes.marker(processes.STACK, uid), spare=processes.DETACHED_RUN, grace_s=0.5)  # left by a crashed host
    host = Host(folder, uid, lock)
    asyncio.run(host.run(ready))
    host.clean_up()


def _forget_signals() -> None:
    """Reset the signals. Sessions inherit ignored or blocked signals, and the caller may have ignored some (`nohup`)."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
        signal.SIGUSR1,
        signal.SIGUSR2,
    ):
        signal.signal(number, signal.SIG_DFL)


def _raise_limit() -> None:
    """Raise the limit of open files. On macOS the limit is 256 by default, but 64 nodes with a few sessions each need more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def _tell(ready: int) -> None:
    try:
        os.write(ready, b"\n")
    except BrokenPipeError:
        logger.info("the driver that started this host has gone")
    finally:
        os.close(ready)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
