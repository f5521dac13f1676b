"""Slurm that is not installed: the error names both ways to get it, and a cluster runs on unpacked packages."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.system.cli import Learner
from tests.waiting import STUCK_S

pytestmark = pytest.mark.system

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "libmunge2")
DAEMONS = ("slurmctld", "slurmd", "slurmstepd")
HIDE = 'cd "$1" && mount -t overlay hidden /usr -o ro,lowerdir=.:/usr || exit 77; shift; cd /; exec "$@"'


@pytest.mark.slow
def test_cluster_runs_on_unpacked_packages_if_slurm_is_not_installed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can hide the installed Slurm from a command")
    files = list_installed_files()
    folder, cache = whiteouts(tmp_path / "hidden", files), tmp_path / "cache"
    learner = Learner(tmp_path / "workspace", {"XDG_CACHE_HOME": str(cache)})

    refusal = without_slurm(learner, folder, "deploy", "2", "--nodes", "1")
    assert refusal.returncode == 3, refusal.stderr
    assert "or, without root privileges: gpucourse deploy 2 --unpack-slurm" in " ".join(refusal.stderr.split())
    layer = unpack(cache / "gpucourse" / "slurm" / "0.1", files)
    try:
        stood = without_slurm(learner, folder, "deploy", "2", "--nodes", "1")
        assert stood.returncode == 0, stood.stderr
        assert str(layer) in without_slurm(learner, folder, "doctor").stdout
        on_head = learner.types(
            "ssh", "2", "--", "cat /usr/share/told; srun --gres=gpu:1 sh -c 'hostname; cat /usr/share/told'"
        )
        assert on_head.out.splitlines() == ["from the layer", "node1", "from the layer"]
    finally:
        learner.types("destroy", "--all", "--yes", "--discard", "--quiet")
    assert learner.processes() == []
    assert (layer / "usr" / "share" / "told").read_text() == "from the layer\n"


def list_installed_files() -> list[Path]:
    """Return the files of the installed packages below /usr. Skip the test if there are none."""
    if missing := [tool for tool in ("dpkg", "unshare", "slurmctld", "munged") if shutil.which(tool) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    result = subprocess.run(["dpkg", "-L", *PACKAGES], capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"not from packages: {result.stderr.strip()}")
    files = {Path("/usr", *Path(line).parts[1:]) if "/usr/" not in line else Path(line) for line in result.stdout.split("\n")}
    links = {Path("/usr/sbin", name) for name in DAEMONS}
    return sorted(path for path in files | links if path.is_relative_to("/usr/") and (path.is_symlink() or path.is_file()))


def whiteouts(folder: Path, files: Sequence[Path]) -> Path:
    """Return a folder that hides these files when it is mounted over /usr."""
    for file in files:
        place = folder / file.relative_to("/usr")
        place.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(place, stat.S_IFCHR, 0)
    return folder


def unpack(layer: Path, files: Sequence[Path]) -> Path:
    """Unpack the packages into a folder, with one additional file that identifies it."""
    for file in files:
        place = layer / file.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)  # through the links of update-alternatives
    (layer / "usr" / "share" / "told").write_text("from the layer\n", encoding="utf-8")
    (layer / "packages.txt").write_text("slurmctld_0.1_all\n", encoding="utf-8")
    return layer


def without_slurm(learner: Learner, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Type a command that cannot see these files, as if Slurm were not installed. Skip the test if this is impossible here."""
    command = ["unshare", "--mount", "sh", "-c", HIDE, "sh", str(folder), sys.executable, "-m", "gpucourse", *words]
    result = subprocess.run(command, env=learner.environment, capture_output=True, text=True, timeout=STUCK_S, check=False)
    if result.returncode == 77:
        pytest.skip(f"this machine does not let the test hide files: {result.stderr.strip()}")
    return result
