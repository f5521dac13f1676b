"""Slurm's daemons on one computer: munged and slurmctld for the head, a slurmd for every other node.

Their configuration, key, state and logs are in `slurm/` inside the nodes' folder. The socket needs a short path, so it is in a
folder below /tmp that no other user may enter.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from gpucourse.local import layout, processes
from gpucourse.local.environment import extend_path
from gpucourse.local.hosted import Spec
from gpucourse.local.machines import kernel, reports, root
from gpucourse.local.machines.daemons import DaemonFailed, last_lines, make_key
from gpucourse.local.machines.reports import SlurmController
from gpucourse.local.one_host import configuration

_START_S, _STOP_S, _POLL_S = 10.0, 5.0, 0.02


class Daemon:
    """A daemon, which runs from `start` until `stop` or `kill`.

    `answers`: a function that tests whether the daemon answers.
    `output`: the file for its output.
    """

    def __init__(self, name: str, output: Path, answers: Callable[[], bool]) -> None:
        self.name = name
        self._output = output
        self._answers = answers
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def serves(self) -> bool:
        """Return whether the daemon's process is running and answers."""
        return self.alive and self._answers()

    @property
    def alive(self) -> bool:
        """Return whether the daemon's process is running, even if it does not answer yet."""
        return self._process is not None and self._process.poll() is None

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the daemon's process. Raises OSError."""
        with self._output.open("wb") as output:
            # Start it in this thread, which lives as long as the host: the kernel ends a child with the thread that started it.
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=partial(kernel.die_with_parent, signal.SIGKILL),  # noqa: PLW1509 (it is a single system call)
            )

    async def ready(self) -> None:
        """Wait until the daemon answers. Raises DaemonFailed, with the daemon's last output."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _START_S
        while not self.serves:
            if not self.alive or loop.time() > deadline:
                self.kill()
                raise DaemonFailed(f"{self.name} does not start: {last_lines(self._output)}")
            await asyncio.sleep(_POLL_S)

    async def stop(self) -> None:
        """Let the daemon store its state, then end it."""
        if self._process is not None and self.alive:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, _STOP_S)
        self.kill()

    def kill(self) -> None:
        """End the daemon immediately."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()


MUNGED, SLURMCTLD, SLURMD = "munged", "slurmctld", "slurmd"

_HEAD = (MUNGED, SLURMCTLD)


class SlurmDaemons:
    """The daemons of one stack. They run from the first `join` until `end`."""

    def __init__(self, folder: Path, uid: str) -> None:
        self._nodes = folder
        self._uid = uid
        self._folder = folder / layout.SLURM
        self._short = layout.sockets(uid)
        self._members: dict[str, Spec] = {}
        self._daemons: dict[str, Daemon] = {}
        self._turn = asyncio.Lock()
        self._controller = SlurmController(
            {"PATH": extend_path(os.environ.get("PATH", os.defpath)), "LANG": "C.UTF-8", **self.environment}
        )

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that direct Slurm's commands to this cluster, and gloo to the interface between the nodes.

        Without the variable for gloo, gloo looks up this computer's own name, which some computers cannot resolve.
        """
        return {"SLURM_CONF": str(self._folder / "slurm.conf"), "GLOO_SOCKET_IFNAME": "lo"}

    async def join(self, spec: Spec) -> None:
        """Start the daemons of this node, and all other daemons that the configuration of `spec` names, if they do not run.

        If the node has joined before, also put it back into use if Slurm excludes it. Raises DaemonFailed, OSError, NoneFree.
        """
        async with self._turn:
            is_member = spec.name in self._members
            self._members[spec.name] = spec
            has_started = await self._bring_up(spec)
        if is_member:
            await asyncio.to_thread(self._restore, spec)
            if not has_started and "*" in await asyncio.to_thread(self._controller.state, spec.name):
                async with self._turn:  # both run, but do not reach each other
                    await self._daemons[spec.name].stop()
                    await self._bring_up(spec)

    def leave(self, name: str) -> None:
        """End the daemons of this node. If no node is left, end every daemon that still runs."""
        spec = self._members.pop(name, None)
        if spec is not None:
            for key in _list_daemons(spec):
                if (daemon := self._daemons.pop(key, None)) is not None:
                    daemon.kill()
        if not self._members:
            self.end()

    def end(self) -> None:
        """End every daemon immediately, as a power cut would."""
        for daemon in self._daemons.values():
            daemon.kill()
        self._daemons.clear()

    async def check(self) -> dict[str, str]:
        """Return what is wrong with each node. The text is empty for a healthy node."""
        states = {name: self._describe_absent(spec) for name, spec in self._members.items()}
        head = next((name for name, spec in self._members.items() if spec.role == "head"), None)
        if head is None or states[head]:
            return states
        logs = {name: [self._log(key) for key in _list_daemons(spec)] for name, spec in self._members.items()}
        meanings = {name: reports.find_symptom(paths) for name, paths in logs.items()}
        return await asyncio.to_thread(self._controller.judge_nodes, states, head, meanings)

    def _describe_absent(self, spec: Spec) -> str:
        absent = [_kind(key) for key in _list_daemons(spec) if key not in self._daemons or not self._daemons[key].serves]
        return reports.describe_ended_daemons(absent) if absent else ""

    def _restore(self, spec: Spec) -> None:
        if spec.role == "head":
            self._controller.release()
        else:
            self._controller.resume(spec.name)

    async def _bring_up(self, spec: Spec) -> bool:
        """Write the configuration, start the missing daemons, and wait for this node's daemons. Return whether any daemon had
        to start."""
        has_started = await self._start_missing(await self._configure(spec.slurm or {}))
        for key in _list_daemons(spec):
            await self._daemons[key].ready()
        return has_started

    async def _configure(self, files: Mapping[str, str]) -> dict[str, int]:
        """Write the daemons' configuration and return their ports. If it changed, stop the daemons that read it."""
        if not self._daemons:
            layout.remove(self._folder / "state")  # the state of an earlier host, whose jobs all ended with it
        self._make_folders()
        ports_file = self._folder / "ports.json"
        running = {key for key, daemon in self._daemons.items() if daemon.alive}
        port_numbers = configuration.choose_ports(configuration.daemons(files), layout.read_json(ports_file) or {}, running)
        layout.write_json(ports_file, port_numbers)
        texts = configuration.fill_in(
            files,
            host=socket.gethostname().split(".")[0],
            user=pwd.getpwuid(os.getuid()).pw_name,
            folder=self._short,
            ports=port_numbers,
            first_job=configuration.first_job(self._uid),
        )
        changes = [self._write(name, text) for name, text in texts.items()]
        if any(changes):
            readers = [daemon for daemon in self._daemons.values() if daemon.name != MUNGED]
            await asyncio.gather(*(daemon.stop() for daemon in readers))
        task = configuration.task(self._uid, self._nodes, self._folder / "slurm.conf")
        self._write(configuration.TASK, task, mode=0o755)
        if not (self._folder / "munge.key").exists():
            self._write("munge.key", make_key(), mode=0o400)
        return port_numbers

    def _write(self, name: str, text: str, *, mode: int = 0o644) -> bool:
        return root.write(str(self._folder / name), text, mode=mode, owner=(os.getuid(), os.getgid()))

    def _make_folders(self) -> None:
        layout.make_sockets(self._uid)
        for folder in (self._folder, self._folder / "state", self._folder / "log"):
            folder.mkdir(mode=0o700, exist_ok=True)
        link = self._short / layout.SLURM  # Slurm's own files are in the large folder, here under a name without blanks
        if not link.is_symlink() or link.readlink() != self._folder:
            layout.remove(link)
            link.symlink_to(self._folder)

    async def _start_missing(self, port_numbers: Mapping[str, int]) -> bool:
        """Start all daemons that are not running. Return whether there were any.

        The head's daemons must be ready first, because a slurmd that finds no slurmctld waits a second before it tries again.
        """
        missing = [key for key in (MUNGED, *port_numbers) if not self._runs(key)]
        for key in missing:
            if key in self._daemons:
                self._daemons[key].kill()
            if key == MUNGED:
                layout.remove(self._munge_socket)  # the socket of a killed munged
            self._daemons[key] = daemon = self._daemon(key, port_numbers)
            marks = {processes.STACK: self._uid, **({} if key in _HEAD else {processes.NODE: f"{self._uid}/{key}"})}
            daemon.start(self._command(key), {**self._controller.environment, **marks})
            if key in _HEAD:
                await daemon.ready()
        return bool(missing)

    def _runs(self, key: str) -> bool:
        return key in self._daemons and self._daemons[key].alive and (key != MUNGED or self._munge_socket.is_socket())

    def _daemon(self, key: str, port_numbers: Mapping[str, int]) -> Daemon:
        if key == MUNGED:
            return Daemon(key, self._log(key), self._munge_socket.is_socket)
        return Daemon(_kind(key), self._folder / "log" / f"{key}.out", lambda: not configuration.is_free(port_numbers[key]))

    def _command(self, key: str) -> list[str]:
        if key == MUNGED:
            files = {f"{name}-file": self._folder / f"munge.{name}" for name in ("key", "pid", "seed")}
            options = [f"--{name}={path}" for name, path in {"socket": self._munge_socket, **files}.items()]
            return [MUNGED, "--foreground", "--force", *options]  # otherwise, the folder would have to be open to everybody
        return [_kind(key), "-D", *(() if key == SLURMCTLD else ("-N", key))]

    @property
    def _munge_socket(self) -> Path:
        return self._short / "munge.sock"

    def _log(self, key: str) -> Path:
        return self._folder / "log" / f"{key if key in _HEAD else f'{SLURMD}.{key}'}.log"


def _list_daemons(spec: Spec) -> tuple[str, ...]:
    """Return the keys of a node's daemons. The head has two; any other node has a slurmd, whose key is the node's name."""
    return _HEAD if spec.role == "head" else (spec.name,)


def _kind(key: str) -> str:
    return key if key in _HEAD else SLURMD
