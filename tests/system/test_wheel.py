"""The wheel works alone: installed elsewhere and used from another folder, it supports everything from deploy to destroy."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.system.test_whole_run import SMALL
from tests.waiting import STUCK_S

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.system, pytest.mark.slow]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built from the sdist of this checkout, as the release does."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_wheel_contains_the_course(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for part in ("modules", "exercises", "terraform", "template"):
        for path in (ROOT / part).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"gpucourse/_course/{path.relative_to(ROOT).as_posix()}" in names
    assert "gpucourse/py.typed" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".tfstate", ".pyc"))]


def test_wheel_that_is_installed_runs_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = next(environment.glob("lib/python3*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    # The dependencies come from the tests' own environment. A plain path does not include its editable install.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    program, elsewhere = environment / "bin" / "python", tmp_path / "else where"
    elsewhere.mkdir()

    def types(*words: str) -> str:
        command = [str(program), "-m", "gpucourse", *words]
        result = subprocess.run(command, cwd=elsewhere, env=clean, capture_output=True, text=True, timeout=STUCK_S, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    (tmp_path / "home").mkdir()
    clean = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path / "home")}
    python_command = [str(program), "-c", "import gpucourse; print(gpucourse.__file__)"]
    assert str(site) in subprocess.run(python_command, capture_output=True, text=True, check=True, cwd=elsewhere).stdout
    try:
        types("deploy", "3")
        assert "passed" in types("run", "3.2", "--nodes", "2", "--set", "epochs=2", *SMALL)
    finally:
        types("destroy", "--all")
    assert (tmp_path / "home" / "gpucourse" / "runs").is_dir(), "the workspace is made in the home folder on first use"
