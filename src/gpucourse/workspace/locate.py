"""Find the learner's workspace, and make it on first use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from gpucourse.errors import HomeMissing, MissingError, UsageError
from gpucourse.limits import DEFAULT_LAB_HOURS
from gpucourse.storage import find_home, make_folder, storing, write_text
from gpucourse.workspace.files import read_record, write_record
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths

_NAME_ANOTHER = "name a folder: gpucourse init DIR, then gpucourse --workspace DIR ..."
_SETTINGS = """\
# Settings of this workspace: the only file here to edit by hand.

# Where `deploy` builds labs: local (simulated nodes on this machine), here, hosts (machines that you have), slurm, or aws.
target: local

# Ports on the head node where ranks may meet; the first free one is taken.
rendezvous_ports: 29500-29599

# For the target aws. Uncomment what you want to change; these are the defaults.
# region: us-east-2
# gpu: {first}                  # else the module's own choice: {choices}
# other_gpus: [{second}]         # used in this order if the requested GPU is sold out
# spot: false
# ttl: {hours:.0f}h                  # a lab ends itself after that
# budget_usd: 20           # deploy refuses to go above it
# owner: your-name         # a tag on everything

# For the target slurm. gpucourse doctor --target slurm --login me@cluster prints these lines as they fit your cluster.
# slurm:
#   login: me@cluster
#   partition: gpu         # else the one that has GPUs and allows the longest time
#   cpu_partition: cpu     # for jobs without a GPU
#   account: abc123
#   setup: [module load pytorch]
#   folder: $SCRATCH       # else your home folder

# For the target hosts.
# hosts: [me@gpu1, "me@gpu2:2222"]
# node_python: /opt/conda/bin/python      # the Python with torch there; else the first one that is found
# host_pythons: {{me@gpu1: /home/me/venv/bin/python}}  # for machines that need another one
"""


def settings_text() -> str:
    """Return the settings of a new workspace, as the text of the file that the learner edits."""
    from gpucourse.hardware import hardware

    choices = hardware().choices
    return _SETTINGS.format(first=choices[0], second=choices[1], choices=", ".join(choices), hours=DEFAULT_LAB_HOURS)


def are_delivered_settings(path: Path) -> bool:
    """Return whether the learner has not changed the settings at `path`, or has none."""
    try:
        return path.read_bytes() == settings_text().encode()
    except OSError:
        return not os.path.lexists(path)


@dataclass(kw_only=True)
class _Identity:
    """The identity of a workspace.

    `version`: the version of the workspace's layout.
    `id`: a text that distinguishes it from other workspaces.
    """

    version: int = 1
    id: str


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """An open workspace. `created` is true if this command made it."""

    paths: WorkspacePaths
    id: str
    created: bool

    @property
    def exists(self) -> bool:
        """Return false if a command that only reads has opened a workspace that does not exist yet."""
        return bool(self.id)


def find_current_folder() -> Path:
    """Return the folder in which the command was typed. Raises MissingError if it has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise MissingError("the current folder no longer exists", hint="cd to another one") from error


def find_root(explicit: Path | None, environ: Mapping[str, str], cwd: Path | None = None) -> Path:
    """Return the workspace's folder: the first of these that is set or exists.

    1. The folder after `--workspace`.
    2. The folder in GPUCOURSE_WORKSPACE.
    3. The current folder, or the nearest folder above it, that contains gpucourse.yaml.
    4. The folder ~/gpucourse.

    `cwd`: the current folder. If it is None, it is looked up only when needed, because it may have been removed.

    Raises HomeMissing if only ~/gpucourse is left and there is no home folder, UsageError for `~name` if there is no such user,
    and the errors of `find_current_folder`.
    """
    if explicit is None and (root_name := environ.get("GPUCOURSE_WORKSPACE")):
        explicit = Path(root_name)
    if explicit is not None and (path := expand(explicit, environ)).is_absolute():
        return absolute(path, path)
    cwd = cwd or find_current_folder()
    if explicit is not None:
        return absolute(path, cwd)
    for folder in (cwd, *cwd.parents):
        if os.access(folder, os.X_OK) and (folder / "gpucourse.yaml").is_file():
            return folder
    return find_home(environ, _NAME_ANOTHER) / "gpucourse"


def find_new_root(explicit: Path | None, environ: Mapping[str, str], cwd: Path | None = None) -> Path:
    """Return the folder in which `init` makes a workspace: the typed folder, else GPUCOURSE_WORKSPACE, else the current folder.
    Raises the errors of `find_root`."""
    if explicit is None and not environ.get("GPUCOURSE_WORKSPACE"):
        explicit = cwd or find_current_folder()
    return find_root(explicit, environ, cwd)


def find_entry(root: Path, environ: Mapping[str, str], cwd: Path | None = None) -> str:
    """Return the command after which commands without `--workspace` use the workspace `root`, or an empty string if they
    already do. Raises the errors of `find_root`, except HomeMissing."""
    try:
        if find_root(None, environ, cwd) == root:
            return ""
    except HomeMissing:
        pass
    return f"export GPUCOURSE_WORKSPACE={quote(str(root))}" if environ.get("GPUCOURSE_WORKSPACE") else f"cd {quote(str(root))}"


def find_other(root: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the workspace in ~/gpucourse, which commands typed outside of `root` use. Return None if there is none, if it is
    `root`, or if such commands use GPUCOURSE_WORKSPACE."""
    try:
        usual = find_home(environ, _NAME_ANOTHER) / "gpucourse"
    except HomeMissing:
        return None
    if environ.get("GPUCOURSE_WORKSPACE") or usual == root or not os.access(usual, os.X_OK):
        return None
    return usual if (usual / "gpucourse.yaml").is_file() else None


def expand(path: Path, environ: Mapping[str, str]) -> Path:
    """Return the path with `~` replaced, because a shell does not replace it after `=` or in quotes. Raises HomeMissing,
    UsageError."""
    if path.parts[:1] == ("~",):
        return find_home(environ, _NAME_ANOTHER).joinpath(*path.parts[1:])
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise UsageError(f"{path}: there is no account {path.parts[0][1:]}", hint=_NAME_ANOTHER) from error


def personal_cache(environ: Mapping[str, str]) -> Path:
    """Return the user's cache folder for all workspaces, in XDG_CACHE_HOME or ~/.cache. Raises HomeMissing."""
    base = environ.get("XDG_CACHE_HOME") or find_home(environ, "export XDG_CACHE_HOME=DIR") / ".cache"
    return Path(base) / "gpucourse"


def open_workspace(root: Path, *, make: bool = True, must_exist: bool = False) -> Workspace:
    """Open the workspace at `root` and create what is missing. Raises NewerFormat, StorageError, UsageError.

    `make`: if it is false, a missing workspace is not created, and its id is empty.
    `must_exist`: refuse a folder without settings, because its name is probably misspelled.

    Commands that run at the same time make only one workspace, because the workspace's id tags everything in the cloud.
    """
    if root == Path("/"):
        raise UsageError("the folder / belongs to the whole computer: no workspace is made there", hint=_NAME_ANOTHER)
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is a file, not a workspace folder", hint=_NAME_ANOTHER)
    paths = WorkspacePaths(root)
    identity = read_record(paths.identity, _Identity)
    if identity is not None:
        return Workspace(paths=paths, id=identity.id, created=False)
    if must_exist and not paths.settings.is_file():
        raise UsageError(
            f"no such workspace: {root}", hint=f"correct the name after --workspace, or: gpucourse init {quote(str(root))}"
        )
    if not make:
        return Workspace(paths=paths, id="", created=False)
    import secrets

    with storing(paths.private):
        try:
            make_folder(root)
            paths.private.mkdir(exist_ok=True, mode=0o700)
        except FileNotFoundError as error:  # as in /proc, where no folder can be created
            raise UsageError(f"cannot make the folder {root}", hint=_NAME_ANOTHER) from error
    with hold_lock(paths.lock("workspace"), "making the workspace"):
        if (stored := read_record(paths.identity, _Identity)) is not None:
            return Workspace(paths=paths, id=stored.id, created=False)
        if not paths.settings.exists():
            write_text(paths.settings, settings_text())
        identity = _Identity(id=secrets.token_hex(6))
        write_record(paths.identity, identity)
    return Workspace(paths=paths, id=identity.id, created=True)


def absolute(path: Path, cwd: Path) -> Path:
    """Return `path`, taken relative to `cwd`, as an absolute path without `..`. Links are kept."""
    return Path(os.path.normpath(cwd / path))
