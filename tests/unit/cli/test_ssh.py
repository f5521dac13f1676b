from __future__ import annotations

import os

import pytest

from tests.learning import Learning, deploy


def test_ssh_is_replaced_by_the_client_of_openssh(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    config = learning.context.paths.stack(deploy(learning).stack).ssh_config
    config.parent.mkdir(parents=True)
    config.touch()
    commands: list[list[str]] = []
    monkeypatch.setattr("shutil.which", lambda _name: "/bin/ssh")
    monkeypatch.setattr(os, "execv", lambda _file, words: commands.append(words))
    learning.types("ssh", "1", "--", "squeue; sinfo")
    learning.types("ssh", "1", "--", "sinfo", "-o", "%P %l")
    learning.types("ssh", "1")
    ssh = ["/bin/ssh", "-F", str(config), "node0"]
    assert commands == [[*ssh, "squeue; sinfo"], [*ssh, "sinfo -o '%P %l'"], ssh]
    monkeypatch.setattr("shutil.which", lambda _name: None)
    assert "OpenSSH's client (ssh) is not installed" in learning.types("ssh", "1", code=3).err
