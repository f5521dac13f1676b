"""Every Python that pyproject.toml promises and this machine has: `python -m tests.pythons`, which .ci/run does.

In a virtual environment of its own, each installs requirements.lock and this checkout, imports every module, and runs
`--help` and `list`. The oldest and the newest, between which all others lie, install torch, too, where an index has its CPU
build for that Python, and run the unit tests of the floors that need neither a node nor an account. The Python that runs this
file is left out: the whole suite runs on it. (.github/workflows has every unit test on each of them.)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import install

ROOT = Path(__file__).parent.parent
PURE = ("course", "workspace", "launch", "grading", "figures", "coach", "report", "test_units.py")
TEST_TOOLS = ("pytest", "pytest-timeout", "jsonschema")
"""What those tests need of the extra `dev`."""
INSTALL_LOCKED = "import sys, install; sys.exit(install.install_locked(sys.argv[1:]))"
IMPORT_ALL = """
import importlib, pkgutil, gpucourse
names = [module.name for module in pkgutil.walk_packages(gpucourse.__path__, "gpucourse.")]
for name in names:
    importlib.import_module(name)
print(len(names), "modules imported")
"""


def main() -> int:
    """Check all of them, two at a time; 0 if all pass."""
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    promised = [version for version in list_promised_versions() if version != own]
    present = {version: path for version in promised if (path := find_python(version))}
    for version in promised:
        if version not in present:
            sys.stdout.write(f"Python {version}: not on this machine, not checked\n")
    with ThreadPoolExecutor(2) as pool:
        ends = {list_promised_versions()[0], list_promised_versions()[-1]}
        checks = [pool.submit(check, version, path, tested=version in ends) for version, path in present.items()]
        for done in checks:
            sys.stdout.write(done.result()[1])
            sys.stdout.flush()
    return max((done.result()[0] for done in checks), default=0)


def list_promised_versions() -> list[str]:
    """The versions that pyproject.toml names, oldest first."""
    versions = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", "\n".join(_project()["classifiers"]), re.MULTILINE)
    return sorted(versions, key=lambda version: int(version.partition(".")[2]))


def find_python(version: str) -> str | None:
    """A Python of this version: pyenv's, or the one on the path. None where there is none that runs."""
    homes = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python{version}"))
    candidates = [str(path) for path in homes] + [f"python{version}"]
    for candidate in reversed(candidates):
        path = shutil.which(candidate)
        if path and subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0:
            return path
    return None


def check(version: str, path: str, *, tested: bool = True) -> tuple[int, str]:
    """Check one Python: the exit code, and what to print. `tested`: with torch and the unit tests."""
    began = time.monotonic()
    lines = []
    with tempfile.TemporaryDirectory(prefix=f"gpucourse-python{version}-") as folder:
        python = str(Path(folder) / "venv" / "bin" / "python")
        clean = clean_environment(Path(folder))
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
        tests = [f"tests/unit/{part}" for part in PURE]
        cpu_build = f"torch=={install.pinned_version('torch')}+cpu"
        steps: list[tuple[Sequence[str], Mapping[str, str]]] = [
            ((path, "-m", "venv", str(Path(folder) / "venv")), os.environ),
            ((python, "-c", INSTALL_LOCKED, "--quiet", "--no-compile"), os.environ),
            ((*pip, "--constraint", str(install.CONSTRAINTS), *tool_requirements(), "--editable", str(ROOT)), os.environ),
            *([((*pip, "--extra-index-url", install.CPU_INDEX, "--retries", "0", cpu_build), os.environ)] if tested else []),
            ((python, "-c", IMPORT_ALL), clean),
            ((python, "-m", "gpucourse", "--help"), clean),
            ((python, "-m", "gpucourse", "list"), clean),
            *([((python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests), clean)] if tested else []),
        ]
        for words, environment in steps:
            done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
            if done.returncode and words[-1] == cpu_build:
                lines.append("without torch, for no index here has its CPU build for this Python")
            elif done.returncode:
                return 1, f"Python {version}: FAILED: {' '.join(words)}\n{done.stdout}{done.stderr}\n"
            elif IMPORT_ALL in words or "pytest" in words:
                lines.append(done.stdout.splitlines()[-1])
    return 0, f"Python {version} ({path}): {'; '.join(lines)}; {time.monotonic() - began:.0f} s in all\n"


def tool_requirements() -> list[str]:
    """What those unit tests need beside the course itself."""
    return [line for line in _project()["optional-dependencies"]["dev"] if re.split(r"[^\w-]", line)[0] in TEST_TOOLS]


def clean_environment(folder: Path) -> dict[str, str]:
    """The environment of a new user: an empty home folder. Bytecode goes there, too."""
    home = folder / "home"
    home.mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def _project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


if __name__ == "__main__":
    sys.exit(main())
