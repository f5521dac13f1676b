"""The programs that simulated machines need, and the command that installs them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from gpucourse.local.machines import requirements


def test_require_names_the_command_that_installs_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {"ip", "sshd", "unshare"}
    monkeypatch.setattr(shutil, "which", lambda name, path="": name if name in programs else None)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(requirements.Lacking, match="slurmctld") as caught:
        requirements.require(slurm=True)
    for package in ("slurmctld", "slurmd", "slurm-client", "munge"):
        assert f" {package}" in caught.value.remedy


def test_require_accepts_programs_of_unpacked_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = {"unshare"}

    def which(name: str, path: str = "") -> str | None:
        return (
            name if name in programs or (str(tmp_path) in path and name in {"sshd", "slurmctld", "slurmd", "sbatch"}) else None
        )

    monkeypatch.setattr(shutil, "which", which)
    monkeypatch.setattr(sys, "platform", "linux")
    assert requirements.unpackable() == [
        *("libpmix2t64" if "t64" in requirements.install_command(slurm=True, packages={"slurmd"}) else "libpmix2",),
        *("munge", "openssh-server", "slurm-client", "slurmctld", "slurmd"),
    ]
    with pytest.raises(requirements.Lacking) as caught:
        requirements.require(slurm=True, layer=tmp_path)
    assert str(caught.value) == "not installed here: ip, munged"  # ip runs before there is a machine


def test_require_refuses_machines_elsewhere_than_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(requirements.Lacking, match="Linux"):
        requirements.require(slurm=False)
