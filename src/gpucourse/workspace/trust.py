"""Check by owners and modes whether a folder can be trusted.

A workspace or a course can run commands. If another user owns it or may write to it, it is refused until this user trusts it,
like git's `safe.directory`. The list of trusted folders is in the user's configuration folder, never in a workspace.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from gpucourse.errors import HomeMissing, UnknownName, UntrustedFolder, UsageError
from gpucourse.outside.names import printable
from gpucourse.storage import find_home
from gpucourse.workspace.files import read_record, write_record
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths

TRUST_LIST = "trusted.json"


@dataclass(kw_only=True)
class _TrustList:
    """The content of the file: the folders that this user trusts, as absolute paths without links."""

    version: int = 1
    folders: list[str] = field(default_factory=list)


def config_folder(environ: Mapping[str, str]) -> Path:
    """Return gpucourse's configuration folder: in XDG_CONFIG_HOME if that is an absolute path, otherwise in ~/.config. Raises
    HomeMissing."""
    base = Path(environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else find_home(environ, "export XDG_CONFIG_HOME=DIR") / ".config") / "gpucourse"


def require_workspace(root: Path, environ: Mapping[str, str]) -> None:
    """Refuse the workspace at `root` if another user could have changed the commands that it runs. Raises UntrustedFolder.

    A file is not refused here: `open_workspace` says that it is one.
    """
    with suppress(OSError):
        if not stat.S_ISDIR(root.stat().st_mode):
            return
    paths = WorkspacePaths(root)
    owners = _find_accepted_owners(environ)
    outer = _find_objections((root, paths.settings, paths.exercises, paths.private), owners)
    # Other users cannot reach anything below a folder that they may not enter, whatever the modes of the files in it.
    inner = _find_objections(_inner(paths), owners, writable_matters=not _is_closed(paths.private))
    scripts = _find_objections(_tree(paths.exercises), owners, writable_matters=not _is_closed(root))
    _require(root, chain(_find_objections_above(root, owners), outer, inner, scripts), "workspace", environ)


def require_course(root: Path, environ: Mapping[str, str]) -> None:
    """Refuse the course in `root` if another user could have changed the commands that it runs. Raises UntrustedFolder."""
    folders = [root / part for part in ("modules", "exercises", "terraform")]
    owners, parts = _find_accepted_owners(environ), chain((root, *folders), *map(_tree, folders))
    _require(root, chain(_find_objections_above(root, owners), _find_objections(parts, owners)), "course", environ)


def list_trusted_folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders that this user trusts, sorted by name. Without a home folder, return none. Raises MissingError if the
    list is damaged."""
    try:
        record = read_record(_file(environ), _TrustList)
    except HomeMissing:
        return ()
    return tuple(sorted(record.folders)) if record else ()


def trust(folder: Path, environ: Mapping[str, str]) -> str:
    """Trust a folder from now on, and return its absolute path.

    Raises UsageError if it is neither a workspace nor a course, and StorageError.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", hint="gpucourse trust DIR: the folder of a workspace or of a course")
    if not _can_be_trusted(folder):
        raise UsageError(
            f"{folder} is neither a workspace nor a course",
            hint="name the folder with gpucourse.yaml, or with modules/ and exercises/: gpucourse trust DIR",
        )
    name = str(folder.resolve())
    with _changing(environ) as record:
        record.folders = sorted({*record.folders, name})
    return name


def _can_be_trusted(folder: Path) -> bool:
    """Return whether a folder contains a workspace or a course, or nothing yet, so that `init` may make a workspace there."""
    paths = WorkspacePaths(folder)
    if any(os.path.lexists(path) for path in (paths.settings, paths.private, folder / "modules")):
        return True
    try:
        return not any(folder.iterdir())
    except OSError:
        return False


def distrust(folder: Path, environ: Mapping[str, str]) -> str:
    """Remove a folder from the list, and return its absolute path. Raises UnknownName if it is not on the list, and
    StorageError."""
    name = str(folder.resolve())
    with _changing(environ) as record:
        if name not in record.folders:
            raise UnknownName("trusted folder", name, record.folders, hint="list them: gpucourse trust --list")
        record.folders.remove(name)
    return name


@contextmanager
def _changing(environ: Mapping[str, str]) -> Iterator[_TrustList]:
    path = _file(environ)
    with hold_lock(path.with_suffix(".lock"), "gpucourse trust", wait_s=10.0):
        record = read_record(path, _TrustList) or _TrustList()
        yield record
        write_record(path, record, mode=0o600)


def _file(environ: Mapping[str, str]) -> Path:
    return config_folder(environ) / TRUST_LIST


def _inner(paths: WorkspacePaths) -> Iterator[Path]:
    """Yield the files below `.gpucourse` that decide which commands a workspace runs: records of labs, Terraform's files,
    keys."""
    yield from (paths.identity, paths.client_key.parent, paths.client_key, paths.deployments, *paths.deployments.glob("*"))
    stacks = paths.stack("any").folder.parent
    yield stacks
    for folder in stacks.glob("*"):
        yield from (folder, paths.stack(folder.name).terraform)


def _tree(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder except links. A link is as safe as the folder that contains it."""
    for place, folders, files in os.walk(folder):
        paths = (Path(place, name) for name in chain(folders, files))
        yield from (path for path in paths if not path.is_symlink())


def _require(root: Path, objections: Iterable[str], kind: str, environ: Mapping[str, str]) -> None:
    objection = next(iter(objections), None)
    if objection is None or str(root.resolve()) in list_trusted_folders(environ):
        return
    place = printable(shlex.quote(str(root)), 4096)
    alternative = "name another with --workspace DIR" if kind == "workspace" else "unset GPUCOURSE_COURSE"
    remedy = f"if you trust it: gpucourse trust {place}; otherwise {alternative}"
    if not _can_be_trusted(root):
        remedy = "choose an empty folder: gpucourse init DIR"
    raise UntrustedFolder(f"{objection}, so the {kind} was not loaded: it can run commands as you", hint=remedy)


def _find_accepted_owners(environ: Mapping[str, str]) -> frozenset[int]:
    """Return the ID of this user and, for root under sudo, of the user who typed sudo, as git does."""
    person = os.geteuid()
    behind = environ.get("SUDO_UID", "")
    if person == 0 and behind.isascii() and behind.isdecimal() and len(behind) <= 10:
        return frozenset({0, int(behind)})
    return frozenset({person})


def _is_closed(folder: Path) -> bool:
    """Return whether only the owner can enter a folder."""
    try:
        return not folder.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH)
    except OSError:
        return False


def _find_objections_above(root: Path, owners: frozenset[int]) -> Iterator[str]:
    """Yield the reasons why folders above `root` cannot be trusted. Root may own these folders.

    Another user who may write to such a folder could replace `root` after the check. In a sticky folder, such as /tmp, that is
    impossible.
    """
    if not os.access(root, os.F_OK):
        return
    for folder in dict.fromkeys((*root.absolute().parents, *root.resolve().parents)):
        sticky = folder.stat().st_mode & stat.S_ISVTX
        if (objection := _find_objection(folder, owners | {0}, writable_matters=not sticky)) is not None:
            yield f"{objection}: another user could replace what is in it"


def _find_objections(paths: Iterable[Path], owners: frozenset[int], *, writable_matters: bool = True) -> Iterator[str]:
    yield from filter(None, (_find_objection(path, owners, writable_matters=writable_matters) for path in paths))


def _find_objection(path: Path, owners: frozenset[int], *, writable_matters: bool) -> str | None:
    """Return why the file at `path` cannot be trusted, or None if it can. A file that does not exist can be trusted."""
    text = printable(str(path), 4096)  # other users choose names, which may contain anything
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # no such file can exist; opening it reports that
            return None
        return f"{text} cannot be checked ({error.strerror})"
    if status.st_uid not in owners:
        return f"{text} belongs to {_user(status.st_uid)}, not to you"
    if not writable_matters:
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"every user of this computer may write to {text}"
    if status.st_mode & stat.S_IWGRP and _has_access_list(path):  # the group's bits are the limit of what the list allows
        return f"an access list (getfacl) lets others write to {text}"
    if status.st_mode & stat.S_IWGRP and not _private_group(status):
        return f"the group {_group(status.st_gid)} may write to {text}"
    return None


def _has_access_list(path: Path) -> bool:
    """Return whether a file has a POSIX access list with further users or groups. Only Linux stores the list as an
    attribute."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except (AttributeError, OSError):
        return False


def _private_group(status: os.stat_result) -> bool:
    """Return whether the owner is the only member of the file's group.

    Many systems create a group of the same name for every user, and set the umask to 002. A folder that such a group may write
    to is still private.
    """
    import grp

    owner = _user(status.st_uid)
    try:
        group = grp.getgrgid(status.st_gid)
    except KeyError:  # a group without an entry has no members except processes with its number
        return status.st_gid == status.st_uid
    return set(group.gr_mem) <= {owner} and (group.gr_name == owner or status.st_gid == status.st_uid)


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _group(number: int) -> str:
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
