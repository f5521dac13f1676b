"""The files in the folder of a stack's simulated nodes.

host.lock      held by the process that hosts the nodes, for as long as it lives
host.json      the id of that process
host.log       its warnings and errors, bounded: the older ones are in host.log.1
control.sock   the socket for the drivers; the folder's mode (0700) keeps others out
node0.json     what Terraform reads: the node, present only when it is up
slurm/         the configuration, key, state and logs of a Slurm whose daemons share this computer
machines/      where the disks of simulated machines are mounted; looks empty from outside
shared/        the folder /shared of all machines
node0/         spec.json, host_key and the node's home
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gpucourse.local import control

LOCK = "host.lock"
HOST = "host.json"
LOG = "host.log"
SOCKET = control.SOCKET
MACHINES = "machines"
SHARED = "shared"
SLURM = "slurm"
_NUMBERED = re.compile(r"node([0-9]+)")
HOST_FILES = (
    SOCKET,
    MACHINES,
    SHARED,
    SLURM,
    HOST,
    LOG,
    f"{LOG}.1",
    LOCK,
)  # the lock is removed last: the process that waits for it finds an empty folder


def sockets(uid: str) -> Path:
    """Return the path of the stack's folder in /tmp, for sockets and temporary files, which must have a short path.

    Every process can derive this path from the uid.
    """
    return Path("/tmp") / f"gpucourse-{hashlib.sha256(uid.encode()).hexdigest()[:12]}"  # noqa: S108 (0700, and its owner is checked)


def make_sockets(uid: str) -> Path:
    """Make and return the folder of `sockets`. Raises PermissionError if another user made it."""
    folder = sockets(uid)
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    return folder


def list_outside(folder: Path, uid: str) -> list[Path]:
    """Return the paths that the stack may have outside its own folder."""
    return [sockets(uid), *find_links(folder)]


def find_links(folder: Path) -> list[Path]:
    """Return the short links in /tmp that runs on these nodes made to their temporary folders. A killed run leaves its link
    behind."""
    root, links = str(folder.absolute()) + os.sep, []
    for path in Path("/tmp").glob("gpucourse-*"):  # noqa: S108 (only links of this user that lead into the folder count)
        try:
            if path.lstat().st_uid == os.getuid() and str(path.readlink()).startswith(root):
                links.append(path)
        except OSError:  # not a link, or gone in the meantime
            continue
    return sorted(links)


def make_temporary(uid: str, name: str) -> Path:
    """Make and return a node's folder for temporary files (TMPDIR). Its path is short enough for sockets, and it is removed
    with the stack.

    Raises PermissionError.
    """
    folder = make_sockets(uid) / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def description(folder: Path, name: str) -> Path:
    """Return the path of the file that Terraform reads about a node."""
    return folder / f"{name}.json"


def node_folder(folder: Path, name: str) -> Path:
    """Return the path of one node's folder, which contains its spec, host key and home."""
    return folder / name


def home(folder: Path, name: str) -> Path:
    """Return the folder in which a session on the node starts."""
    return folder / name / "home"


def spec_file(folder: Path, name: str) -> Path:
    """Return the path of a node's spec, which the host reads to restore a node after a crash."""
    return folder / name / "spec.json"


def host_key(folder: Path, name: str) -> Path:
    """Return the path of the node's private SSH key."""
    return folder / name / "host_key"


def node_names(folder: Path) -> list[str]:
    """Return the names of all nodes that have files here, even incomplete ones. Other files in the folder are ignored."""
    try:
        entries = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    traces = {
        entry.name.removesuffix(".json") for entry in entries
    }  # a folder, its description, or a file in the place of a folder
    return sorted(name for name in traces if _NUMBERED.fullmatch(name))


def check_name(name: object) -> str:
    """Return the name if it is the name of a node; otherwise raise ValueError.

    The name becomes part of paths, but it comes from Terraform's state, a file that others may have written.
    """
    if not isinstance(name, str) or not _NUMBERED.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a node")
    return name


def select_nodes(names: Collection[str], request: Mapping[str, Any]) -> list[str]:
    """Return the nodes that a request selects. A request with a `name` selects that node. A request with a `count` selects
    every node in `names` whose number is `count` or higher.

    Raises ValueError if `name` is not the name of a node, or `count` is not a number of nodes.
    """
    if "name" in request:
        return [check_name(request["name"])]
    count = request.get("count")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ValueError(f"{count!r} is not a number of nodes")
    numbers = {name: int(match[1]) for name in names if (match := _NUMBERED.fullmatch(name))}
    return sorted(name for name, number in numbers.items() if number >= count)


def write_json(path: Path, content: object) -> None:
    """Write a document in one step, so that a reader sees either the old document or the new one."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    aside.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the document at `path`, or None if it is missing or incomplete."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def last_line(folder: Path) -> str:
    """Return the last line of the host's log, with the log's path."""
    log = folder / LOG
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{lines[-1]} (full log: {log})" if lines else f"it wrote nothing to {log}"


def remove_node_files(folder: Path, name: str) -> None:
    """Remove every file of one node. Its description is removed first, so that no reader mistakes the remaining files for a
    node."""
    description(folder, name).unlink(missing_ok=True)
    for aside in folder.glob(f".{name}.json.*"):
        aside.unlink(missing_ok=True)
    remove(node_folder(folder, name))


def remove(path: Path) -> None:
    """Remove a file, or a folder with its contents, even if its owner has no permission to write in the folder."""
    import shutil

    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        for parent, _folders, _files in os.walk(path):
            Path(parent).chmod(0o700)
        shutil.rmtree(path)
