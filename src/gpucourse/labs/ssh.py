"""The files that plain `ssh` needs to reach a node: the configuration that `deploy` wrote and, if the learner agrees, a line in
~/.ssh/config that includes it."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import MissingError, UnknownName, UsageError
from gpucourse.model.node import Node
from gpucourse.outside.files import read_bounded
from gpucourse.outside.names import OutsideError, printable
from gpucourse.remote.ssh_config import ASK_S, name_own_config
from gpucourse.runs.resolve import find_deployed_lab
from gpucourse.storage import storing, write_bytes
from gpucourse.workspace import deployments
from gpucourse.workspace.files import read_record, write_record
from gpucourse.workspace.paths import WorkspacePaths

_MAX_BYTES = 1 << 20
# Characters that OpenSSH would not read literally in the name of a file to include.
_UNSAFE = re.compile(r"[*?\[\]{}\"\\\\%$\x00-\x1f\x7f]")


def connection(context: Context, module_id: str, node: str) -> tuple[Path, Node]:
    """Return the SSH configuration of a module's lab, and one of its nodes. `node`: the node's number or name, such as `1` or
    `node1`.

    Raises MissingError if the lab is not deployed, UnknownName if it has no such node.
    """
    deployment = find_deployed_lab(context.paths, context.catalog.module(module_id))
    nodes = {node.name: node for node in deployment.inventory.nodes} if deployment.inventory else {}
    name = list(nodes)[int(node)] if node.isdecimal() and int(node) < len(nodes) else node
    if name not in nodes:
        raise UnknownName("node", node, nodes)
    config = context.paths.stack(deployment.stack).ssh_config
    if not nodes[name].way and not config.is_file():
        raise MissingError(f"{config} is gone", hint=f"gpucourse deploy {deployment.module}")
    return config, nodes[name]


@dataclass(kw_only=True)
class _SshIncludeAnswer:
    """The learner's answer to whether to add the Include line. The question is asked only once."""

    version: int = 1
    wanted: bool


def read_answer(paths: WorkspacePaths) -> bool | None:
    """Return the learner's answer, or None if the question has not been asked yet."""
    record = read_record(paths.ssh_include, _SshIncludeAnswer)
    return record.wanted if record else None


def keep_answer(paths: WorkspacePaths, *, answer: bool) -> None:
    """Store the learner's answer: whether the line may be added."""
    write_record(paths.ssh_include, _SshIncludeAnswer(wanted=answer))


def find_config(environ: Mapping[str, str]) -> Path:
    """Return the path of the learner's SSH configuration, with links resolved. The file may not exist yet.

    Raises MissingError without a home folder. Raises UsageError if the file belongs to another user or is outside the
    learner's home folder, or if HOME is not the home folder that OpenSSH uses.
    """
    home = Path(environ.get("HOME", ""))
    if not home.is_absolute() or not home.is_dir():
        raise MissingError("HOME is not set to a folder, so there is no ~/.ssh/config", hint="export HOME=/home/you")
    if home.resolve() != find_registered_home().resolve():
        raise UsageError(
            f"OpenSSH reads {find_registered_home()}/.ssh/config, but HOME is {home}",
            hint="set HOME to the home folder of your account",
        )
    try:
        root, config = home.resolve(), name_own_config(home).resolve(strict=False)
    except (OSError, RuntimeError) as error:
        raise _refuse(name_own_config(home), "it is a broken link") from error
    if not config.is_relative_to(root):
        raise _refuse(config, f"it is outside {root}")
    for path in (config, config.parent):
        if path.exists() and path.stat().st_uid != os.geteuid():
            raise _refuse(path, "it belongs to another user")
    if config.exists() and not stat.S_ISREG(config.stat().st_mode):
        raise _refuse(config, "it is not a file")
    return config


def find_registered_home() -> Path:
    """Return this user's home folder as recorded by the system. OpenSSH uses that folder."""
    return Path(pwd.getpwuid(os.geteuid()).pw_dir)


def add_line(context: Context) -> bool:
    """Add the Include line; return whether it was missing before.

    Raises MissingError, or UsageError if the file was left unchanged.
    """
    config = find_config(context.environ)
    lines = _make_lines(context.paths)
    with context.lock("ssh-include", "changing ~/.ssh/config"):
        text = _read(config)
        if lines in text:
            return False
        _require_readable(config, text)
        _replace(config, lines + text)
    return True


def remove_line(context: Context) -> bool:
    """Remove the Include line; return whether the file contained it. A file without other content is removed too.

    Raises the errors of `add_line`.
    """
    config = find_config(context.environ)
    lines = _make_lines(context.paths)
    with context.lock("ssh-include", "changing ~/.ssh/config"):
        text = _read(config)
        if lines not in text:
            return False
        remaining_text = text.replace(lines, b"", 1)
        if remaining_text:
            _replace(config, remaining_text)
        else:
            config.unlink()
    return True


def has_labs(paths: WorkspacePaths) -> bool:
    """Return whether this workspace has any recorded lab, even one whose record cannot be read."""
    labs, unreadable = deployments.readable(paths)
    return bool(labs or unreadable)


def _make_lines(paths: WorkspacePaths) -> bytes:
    pattern = paths.all_ssh_hosts
    folder = str(paths.root)
    if _UNSAFE.search(folder):
        raise UsageError(
            f"~/.ssh/config cannot name this workspace: {printable(folder)} has characters with a special meaning there",
            hint="gpucourse ssh works; or choose another folder: gpucourse init DIR",
        )
    about = "# the labs of gpucourse; gpucourse init --no-ssh-include takes these two lines away"
    return f'{about}\nInclude "{pattern}"\n'.encode()


def _read(config: Path) -> bytes:
    try:
        return read_bounded(config, _MAX_BYTES)
    except FileNotFoundError:
        return b""
    except OutsideError as error:
        raise _refuse(config, str(error)) from error


def _require_readable(config: Path, text: bytes) -> None:
    """Check that OpenSSH understands the configuration. Raises UsageError if it does not, MissingError without OpenSSH."""
    client = shutil.which("ssh")
    if client is None:
        raise MissingError("OpenSSH's client is not installed", hint="install it: apt install openssh-client")
    if not text:
        return
    words = [client, "-G", "-F", str(config), "--", "gpucourse-0-node0"]
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=ASK_S, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise _refuse(config, f"ssh did not read it within {ASK_S:g} s") from error
    if result.returncode != 0:
        raise _refuse(config, f"ssh does not understand it: {printable(result.stderr.strip(), 200)}")


def _replace(config: Path, text: bytes) -> None:
    """Write the file atomically, with its former permissions."""
    mode = stat.S_IMODE(config.stat().st_mode) if config.exists() else 0o600
    with storing(config):
        config.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_bytes(config, text, mode=mode)


def _refuse(path: Path, reason: str) -> UsageError:
    return UsageError(f"{path} is left unchanged: {reason}", hint="gpucourse ssh 3 --node 0 works without it")
