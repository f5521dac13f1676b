"""Which workspaces are trusted at once, and which only after `gpucourse trust`. Tests with other owners need root, and are
skipped otherwise.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, UnknownName, UntrustedFolder, UsageError
from gpucourse.workspace.locate import open_workspace
from gpucourse.workspace.trust import config_folder, distrust, list_trusted_folders, require_course, require_workspace, trust

SOMEBODY = 61_235
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to somebody else")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a workspace with a lab on record."""
    paths = open_workspace(tmp_path / "workspace").paths
    paths.deployments.mkdir()
    paths.deployment("03-hosts").write_text("{}")
    paths.stack("03-hosts").terraform.mkdir(parents=True)
    (paths.exercises / "03/lib").mkdir(parents=True)
    (paths.exercises / "03/lib/train.py").touch()
    return paths.root


def give_away(path: Path) -> None:
    os.chown(path, SOMEBODY, SOMEBODY)


def open_to_all(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o002)


def let_in(folder: Path, kind: str) -> None:
    """Give SOMEBODY access to a folder by a POSIX access list: the folder's own list (`access`), or the one for new files in it
    (`default`).
    """
    owner, user, group, mask, other, none = 1, 2, 4, 16, 32, (1 << 32) - 1
    entries = [(owner, 7, none), (user, 7, SOMEBODY), (group, 5, none), (mask, 7, none), (other, 5, none)]
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(folder, f"system.posix_acl_{kind}", packed)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        pytest.skip("the file system of the tests has no access lists")


PARTS = ("", "gpucourse.yaml", "exercises", "exercises/03", "exercises/03/lib", "exercises/03/lib/train.py", ".gpucourse",
         ".gpucourse/deployments", ".gpucourse/deployments/03-hosts.json", ".gpucourse/stacks",
         ".gpucourse/stacks/03-hosts", ".gpucourse/stacks/03-hosts/terraform")  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("change", [pytest.param(give_away, marks=as_root), open_to_all])
def test_require_workspace_refuses_a_part_of_others_until_it_is_trusted(
    root: Path, environ: dict[str, str], part: str, change: Callable[[Path], None]
) -> None:
    require_workspace(root, environ)
    for path in (root, *root.rglob("*")):  # as a copy or a plain umask leaves them: a closed folder would hide what is in it
        path.chmod(0o755 if path.is_dir() else 0o644)
    change(root / part)
    with pytest.raises(UntrustedFolder) as caught:
        require_workspace(root, environ)
    assert str(root / part) in caught.value.what
    assert f"gpucourse trust {root}" in caught.value.hint
    trust(root, environ)
    require_workspace(root, environ)
    distrust(root, environ)
    with pytest.raises(UntrustedFolder):
        require_workspace(root, environ)


def test_require_workspace_accepts_a_link_among_the_exercises(root: Path, environ: dict[str, str]) -> None:
    (root / "exercises/data").symlink_to("/tmp")
    require_workspace(root, environ)


@as_root
def test_require_workspace_looks_at_the_target_of_a_link(root: Path, environ: dict[str, str], tmp_path: Path) -> None:
    give_away(root)
    (tmp_path / "mine").symlink_to(root)
    with pytest.raises(UntrustedFolder):
        require_workspace(tmp_path / "mine", environ)
    trust(tmp_path / "mine", environ)
    assert list_trusted_folders(environ) == (str(root),)
    require_workspace(tmp_path / "mine", environ)


@as_root
def test_require_workspace_accepts_for_root_what_the_user_of_sudo_owns(root: Path, environ: dict[str, str]) -> None:
    for path in (root, *root.rglob("*")):
        give_away(path)
    require_workspace(root, {**environ, "SUDO_UID": str(SOMEBODY)})
    for uid in ("1", "", "-1", "x", "9" * 400):
        with pytest.raises(UntrustedFolder):
            require_workspace(root, {**environ, "SUDO_UID": uid})


@as_root
def test_require_workspace_accepts_the_own_group_and_no_other(root: Path, environ: dict[str, str]) -> None:
    root.chmod(0o775)  # umask 002, the owner's own group
    require_workspace(root, environ)
    os.chown(root, -1, SOMEBODY)
    with pytest.raises(UntrustedFolder, match=f"the group {SOMEBODY} may write"):
        require_workspace(root, environ)
    root.chmod(0o755)
    require_workspace(root, environ)


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_require_workspace_accepts_a_new_one_with_any_umask(tmp_path: Path, environ: dict[str, str], umask: int) -> None:
    old_umask = os.umask(umask)
    try:
        open_workspace(tmp_path / "new")
    finally:
        os.umask(old_umask)
    require_workspace(tmp_path / "new", environ)


@pytest.mark.parametrize("part", ["", "modules", "terraform", "modules/01-rivers", "exercises/01-rivers/a.py"])
def test_require_course_refuses_what_others_may_change(tmp_path: Path, environ: dict[str, str], part: str) -> None:
    course = tmp_path / "course"
    for name in ("modules/01-rivers", "exercises/01-rivers", "terraform"):
        (course / name).mkdir(parents=True)
    (course / "exercises/01-rivers/a.py").touch()
    require_course(course, environ)
    open_to_all(course / part)
    with pytest.raises(UntrustedFolder, match="so the course was not loaded"):
        require_course(course, environ)
    trust(course, environ)
    require_course(course, environ)


def test_config_folder_of_the_user_has_the_list_of_trust(tmp_path: Path, environ: dict[str, str]) -> None:
    assert config_folder(environ) == tmp_path / "config" / "gpucourse"
    (tmp_path / "home").mkdir()
    assert config_folder({**environ, "XDG_CONFIG_HOME": "relative"}) == tmp_path / "home" / ".config" / "gpucourse"
    trust(tmp_path / "home", environ)
    assert (config_folder(environ) / "trusted.json").stat().st_mode & 0o777 == 0o600


def test_distrust_refuses_an_unknown_folder_and_trust_a_missing_one(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        trust(tmp_path / "nowhere", environ)
    (tmp_path / "shared").touch()
    with pytest.raises(UsageError, match="neither a workspace nor a course"):
        trust(tmp_path, environ)
    with pytest.raises(UnknownName, match="no trusted folder"):
        distrust(tmp_path, environ)
    assert list_trusted_folders(environ) == ()


def test_require_workspace_refuses_all_when_the_list_is_damaged(root: Path, environ: dict[str, str]) -> None:
    trust(root, environ)
    open_to_all(root)
    (config_folder(environ) / "trusted.json").write_text('{"folders": 7}')
    with pytest.raises(MissingError, match="is damaged"):
        require_workspace(root, environ)


def test_require_workspace_with_an_access_list_for_others_refuses(root: Path, environ: dict[str, str]) -> None:
    let_in(root / "exercises", "access")
    with pytest.raises(UntrustedFolder, match=r"an access list .* lets others write to .*/exercises"):
        require_workspace(root, environ)
    (root / "exercises").chmod(0o755)  # takes what the list allows down to reading
    require_workspace(root, environ)


@pytest.mark.parametrize("change", [pytest.param(give_away, marks=as_root), open_to_all])
@pytest.mark.parametrize("require", [require_workspace, require_course])
def test_require_below_a_folder_that_others_may_change_refuses(
    tmp_path: Path, environ: dict[str, str], change: Callable[[Path], None], require: Callable[[Path, dict[str, str]], None]
) -> None:
    root = tmp_path / "lab" / "mine" / "work"
    root.mkdir(parents=True)
    require(root, environ)
    change(tmp_path / "lab")
    (tmp_path / "link").symlink_to(root.parent)
    for path in (root, tmp_path / "link" / "work"):
        with pytest.raises(UntrustedFolder, match=f"{tmp_path}/lab.*: another user could replace what is in it"):
            require(path, environ)
    trust(root, environ)
    require(root, environ)
