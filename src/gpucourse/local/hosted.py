"""Run a node in its host: its folder, its SSH server, its processes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpucourse.local import environment, health, layout, server
from gpucourse.local.environment import extend_path
from gpucourse.local.session import login_shell, serve
from gpucourse.model.node import SIMULATED, Mode, is_simulated
from gpucourse.outside.documents import convert


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The description of a node.

    `uid`: the stack's uid.
    `public_key`: the key that may log in as soon as the node is up.
    `root`: the folder that replaces the root of the node's file system, or an empty string. Sessions find it in
    GPUCOURSE_NODE_ROOT.
    `addresses`: the address of every machine of the stack, by name. A node with addresses is a separate machine.
    `link`: the speed of a machine's cable.
    `layer`: a folder with packages that were unpacked without being installed.
    `slurm`: the files of a machine's /etc/slurm or, without addresses, of a cluster whose daemons share this computer.
    `mode`, `instance_type`: the defaults are for a simulated node. They differ if the target is this computer itself.
    """

    name: str
    role: str
    uid: str
    user: str
    python: str
    public_key: str
    root: str = ""
    gpus: int = 0
    addresses: dict[str, str] = field(default_factory=dict)
    link: str = ""
    slurm: dict[str, str] | None = None
    layer: str = ""
    mode: Mode = SIMULATED
    instance_type: str = "simulated"

    @classmethod
    def read(cls, document: object) -> Spec:
        """Return the spec in a document. Raises OutsideError (a ValueError) if the document is not a spec."""
        spec = convert(document, cls)
        layout.check_name(spec.name)
        return spec

    @property
    def hardware(self) -> tuple[object, ...]:
        """Return the parts of a node that cannot be changed while it is on. For a machine, these are its cable, devices and
        programs."""
        return (self.addresses.get(self.name), self.link, self.gpus, self.layer) if self.addresses else (bool(self.slurm),)


class HostedNode:
    """A node that accepts logins after `open` and until `close`."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        self.spec = spec
        self.port = 0
        self._folder = folder
        self._stop_listening: Callable[[], None] | None = None
        self._connections: set[Any] = set()
        self._shell = login_shell()

    async def open(self) -> None:
        """Create what is missing in the node's folder and listen on the node's earlier port, or on a new one if that is in use.

        If the node is already open, it uses its current spec from now on, and connections stay open.
        """
        self.close()
        port = prepare(self._folder, self.spec)
        try:
            self.port, self._stop_listening = await self._listen(port)
        except OSError:
            self.port, self._stop_listening = await self._listen(0)
        layout.write_json(layout.spec_file(self._folder, self.spec.name), {**asdict(self.spec), "port": self.port})

    def describe(self) -> dict[str, object]:
        """Return the node's description, in the form of a `model.node.Node`."""
        return {
            "name": self.spec.name,
            "role": self.spec.role,
            "address": server.ADDRESS,
            "port": self.port,
            "private_address": self.spec.addresses.get(self.spec.name, server.ADDRESS),
            "user": self.spec.user,
            "gpus": self.spec.gpus,
            "instance_type": self.spec.instance_type,
            "python": self.spec.python,
            "mode": self.spec.mode,
            "host_key": server.public_part(layout.host_key(self._folder, self.spec.name)),
        }

    def close(self) -> None:
        """Accept no more logins. Open connections continue."""
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None

    async def end(self) -> None:
        """Accept no more logins, and end every connection."""
        self.close()
        for connection in list(self._connections):
            connection.abort()

    async def _listen(self, port: int) -> tuple[int, Callable[[], None]]:
        endpoint = server.Endpoint(
            user=self.spec.user,
            home=layout.home(self._folder, self.spec.name),
            host_key=layout.host_key(self._folder, self.spec.name),
            banner=health.banner(self.spec.uid, self.spec.name),
            serve=self._serve,
            connections=self._connections,
        )
        return await server.listen(endpoint, port)

    async def _serve(self, channel: server.SshChannel) -> None:
        kind = channel.terminal.kind if channel.terminal else None
        session_environment = environment.make_session_environment(self._environment(), channel.environment, kind)
        await serve(channel, shell=self._shell, home=layout.home(self._folder, self.spec.name), environment=session_environment)

    def _environment(self) -> dict[str, str]:
        """Return the environment that every session starts with. On a simulated node, temporary files go to the stack's
        folder."""
        simulated = is_simulated(self.spec.mode)
        temporary = {"TMPDIR": str(layout.make_temporary(self.spec.uid, self.spec.name))} if simulated else {}
        return temporary | environment.make_node_environment(
            name=self.spec.name,
            uid=self.spec.uid,
            user=self.spec.user,
            python=self.spec.python,
            root=self.spec.root,
            home=layout.home(self._folder, self.spec.name),
            shell=self._shell,
            host={name: value for name, value in os.environ.items() if name not in temporary},
            real=not simulated,
        )


def prepare(folder: Path, spec: Spec) -> int:
    """Create what is missing in the node's folder. Return the node's earlier port, or 0 if it had none."""
    earlier = layout.read_json(layout.spec_file(folder, spec.name)) or {}
    if earlier and earlier.get("uid") != spec.uid:
        layout.remove_node_files(folder, spec.name)  # an earlier stack's
        earlier = {}
    home = layout.home(folder, spec.name)
    for folder_to_make in (layout.node_folder(folder, spec.name), home, home / ".ssh"):
        folder_to_make.mkdir(mode=0o700, exist_ok=True)
    key = layout.host_key(folder, spec.name)
    try:
        server.public_part(key)
    except (OSError, ValueError):  # there is none, or it is damaged
        server.make_host_key(key)
    _authorize(home / ".ssh" / "authorized_keys", spec.public_key)
    profile = home / ".profile"
    if not profile.exists():
        bin_folder = shlex.quote(str(Path(spec.python).parent))
        # A login shell reads the machine's /etc/profile first, which sets PATH.
        path = extend_path(f"{bin_folder}:$PATH")
        profile.write_text(f"PATH={path}\nPS1='[{spec.name}] \\w \\$ '\n", encoding="utf-8")
    port = earlier.get("port", 0)
    return port if isinstance(port, int) else 0


def _authorize(file: Path, key: str) -> None:
    """Add the key's line to the file if it is missing, and keep every other line as it is."""
    lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines() if file.exists() else []
    if key.strip() in (line.strip() for line in lines):
        return
    file.touch(mode=0o600)
    file.write_text("\n".join([*lines, key.strip()]) + "\n", encoding="utf-8", errors="surrogateescape")


def load_stored_specs(folder: Path, uid: str) -> list[Spec]:
    """Return the stored specs of this stack's nodes. An earlier host served these nodes."""
    documents = (layout.read_json(layout.spec_file(folder, name)) for name in layout.node_names(folder))
    return [Spec.read(document) for document in documents if document and document.get("uid") == uid]
