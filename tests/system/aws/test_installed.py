"""The installed wheel, typed from another folder, plans a lab on AWS with its own stacks. tests/system/test_wheel.py goes the
whole way with it, test_deploy.py with the same stacks on AWS."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.system.aws.learner import CloudLearner

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.system, pytest.mark.slow]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A Python that has the wheel of this checkout, and not the checkout."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    environment = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = next(environment.glob("lib/python3*/site-packages"))
    zipfile.ZipFile(next(tmp_path.glob("*.whl"))).extractall(site)
    # The dependencies are shared with the tests' own environment; a plain path does not bring its editable install along.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin" / "python"


def test_a_rehearsal_from_the_wheel(program: Path, learner: CloudLearner, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()

    def types(*words: str) -> str:
        done = subprocess.run(
            [str(program), "-m", "gpucourse", *words],
            cwd=elsewhere,
            env=learner.environment,
            capture_output=True,
            text=True,
            timeout=400,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    where = [str(program), "-c", "import gpucourse; print(gpucourse.__file__)"]
    output = subprocess.run(where, capture_output=True, text=True, check=True, cwd=elsewhere).stdout
    assert output.startswith(str(tmp_path))
    assert "17 to create" in types("deploy", "3", "--target", "aws", "--dry-run")
    assert learner.list_resources() == []
