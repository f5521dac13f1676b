"""The line in the learner's own ~/.ssh/config: it is removed without a trace, and never written where it is not allowed."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpucourse.labs import ssh
from gpucourse.labs.readiness import write_ssh_files
from tests.learning import Learning, deploy

OWN = b"# mine\nHost *.example.org\n  User ada\n"

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH's client is not installed: make system-deps")


def register_home(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make this folder the home that the system has registered for the user."""
    patch.setattr(ssh, "find_registered_home", lambda: folder)


def make_config(learning: Learning, patch: pytest.MonkeyPatch) -> Path:
    """Make the configuration of a learner whose lab is deployed."""
    register_home(patch, learning.root)
    lab = deploy(learning)
    assert lab.inventory is not None
    write_ssh_files(learning.context, learning.context.paths.stack(lab.stack), lab.inventory)
    path = learning.root / ".ssh" / "config"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(OWN)
    path.chmod(0o640)
    return path


@pytest.fixture
def config(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_config(learning, monkeypatch)


def read_port(config: Path, name: str) -> str:
    """Return the port at which plain ssh would reach this name."""
    output = subprocess.run(["ssh", "-G", "-F", str(config), name], capture_output=True, text=True, check=True).stdout
    return next(line.split()[1] for line in output.splitlines() if line.startswith("port "))


def test_ssh_include_reaches_the_nodes_and_is_undone_to_the_byte(learning: Learning, config: Path) -> None:
    learning.types("init", str(learning.workspace), "--ssh-include")
    assert config.read_bytes().endswith(OWN)
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert read_port(config, "gpucourse-1-node0") == read_port(config, "gpucourse-01-local-node0") == "2200"
    assert read_port(config, "node0") == "22", "a machine of the learner's own may have that name"
    assert "as before" in learning.types("init", str(learning.workspace), "--ssh-include").err
    assert config.read_bytes().count(b"Include") == 1
    learning.types("init", str(learning.workspace), "--no-ssh-include")
    assert config.read_bytes() == OWN


def test_ssh_include_removes_a_config_that_it_made(learning: Learning, config: Path) -> None:
    shutil.rmtree(config.parent)
    learning.types("init", str(learning.workspace), "--ssh-include")
    assert (stat.S_IMODE(config.stat().st_mode), stat.S_IMODE(config.parent.stat().st_mode)) == (0o600, 0o700)
    learning.types("init", str(learning.workspace), "--no-ssh-include")
    assert not config.exists()


@pytest.mark.parametrize("fault", ["unreadable", "outside", "folder", "foreign", "no home", "another home", "name"])
def test_read_answer_is_no_if_the_config_may_not_be_changed(
    learning: Learning, config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, fault: str
) -> None:
    target = tmp_path_factory.mktemp("outside") / "config"
    workspace, code, reason = learning.workspace, 2, "is left unchanged"
    if fault == "unreadable":
        config.write_text("Hosst x\n")
        reason = "ssh does not understand it"
    elif fault == "outside":
        config.rename(target)
        config.symlink_to(target)
        reason = "it is outside"
    elif fault == "folder":
        config.unlink()
        config.mkdir()
        reason = "it is not a file"
    elif fault == "foreign":
        monkeypatch.setattr(ssh, "os", SimpleNamespace(geteuid=lambda: 4242))
        reason = "it belongs to another user"
    elif fault == "no home":
        monkeypatch.setenv("HOME", "/no/such/folder")
        code, reason = 3, "HOME is not set to a folder"
    elif fault == "another home":
        register_home(monkeypatch, target.parent)
        reason = "OpenSSH reads"
    else:
        workspace = learning.root / "a*b"
        reason = "characters with a special meaning there"
    contents = {path: path.read_bytes() for path in (config, target) if path.is_file()}
    result = learning.types("init", str(workspace), "--ssh-include", code=code)
    assert reason in " ".join(result.err.split())
    assert {path: path.read_bytes() for path in contents} == contents
    assert ssh.read_answer(learning.context.paths) is None


def test_ssh_include_keeps_a_link_inside_home(learning: Learning, config: Path) -> None:
    target = learning.root / "dotfiles" / "ssh_config"
    target.parent.mkdir()
    config.rename(target)
    config.symlink_to(target)
    learning.types("init", str(learning.workspace), "--ssh-include")
    assert config.is_symlink()
    assert target.read_bytes().endswith(OWN)
    assert target.read_bytes() != OWN
