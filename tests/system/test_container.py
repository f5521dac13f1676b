"""Type the Dockerfile line by line in a clean environment: a copy of the checkout and a plain user, without a container."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.plain_user import NUMBER, words_of_a_plain_user

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.system
DOCKERFILE = [
    line.partition(" ") for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines() if line[:1].isupper()
]
OF_ROOT = ("apt-get ", "useradd ", "install --directory --owner learner ")
"""The beginnings of lines that root types. The test replaces them with its own user, folder and packages."""


def test_packages_of_the_dockerfile_are_those_of_the_tests_and_what_a_checkout_needs() -> None:
    (line,) = (words for name, _, words in DOCKERFILE if name == "RUN" and words.startswith("apt-get"))
    packages = line.partition("--no-install-recommends ")[2].partition(" &&")[0].split()
    pairs = (ROOT / "tests" / "system-parts.sh").read_text(encoding="utf-8")
    assert [name for name in packages if f":{name} " not in pairs] == ["git", "make"]


def test_dev_container_has_the_system_and_the_installation_of_the_dockerfile() -> None:
    settings = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert f"AS {settings['build']['target']}" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert (ROOT / ".devcontainer" / settings["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert ("RUN", " ", settings["postCreateCommand"]) in DOCKERFILE
    assert ("RUN", " ", f"useradd --create-home --shell /bin/bash {settings['remoteUser']}") in DOCKERFILE


def test_python_of_the_dockerfile_is_one_that_the_project_promises() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = DOCKERFILE[0][2].removeprefix("python:").partition("-")[0]
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


def copy_context(target: Path) -> None:
    """Copy the files that COPY would copy: those of the checkout that .dockerignore does not exclude."""
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        source = ROOT / line[1:]
        if line.startswith("!") and source.is_dir():
            shutil.copytree(source, target / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif line.startswith("!"):
            shutil.copy(source, target)


@pytest.mark.slow
@pytest.mark.timeout(900)  # installs torch, which takes 90 s on two idle cores
def test_lines_of_the_dockerfile_make_an_image_in_which_the_demo_works() -> None:
    with tempfile.TemporaryDirectory(prefix="image-", dir="/var/tmp") as folder:  # it has gigabytes: not in memory
        home, course = Path(folder), Path(folder) / "gpucourse"
        before = words_of_a_plain_user(home) if os.geteuid() == 0 else ()
        course.mkdir(exist_ok=True)
        environ = {"HOME": str(home / "home"), "PATH": f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        environ |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}

        def type_line(line: str) -> str:
            command = [*before, "sh", "-c", f"cd {course} && {line}"]
            result = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
            assert result.returncode == 0, f"{line}: {result.stdout[-2000:]}{result.stderr[-2000:]}"
            return result.stdout

        run_lines(course, environ, type_line)
        assert "nothing is left" in type_line("make demo")
        assert "gpucourse" in type_line("gpucourse next")


def run_lines(course: Path, environ: dict[str, str], type_line: Callable[[str], str]) -> None:
    """Run the lines of the Dockerfile. The course is in `course` instead of /opt/gpucourse."""
    for name, _, words in DOCKERFILE:
        if name == "COPY":
            assert words == "--chown=learner . ."
            copy_context(course)
            if os.geteuid() == 0:
                subprocess.run(["chown", "-R", str(NUMBER), str(course)], check=True)
        elif name == "ENV":
            pairs = (pair.split("=", 1) for pair in words.replace("/opt/gpucourse", str(course)).split())
            environ |= {variable: value.replace("$PATH", environ["PATH"]) for variable, value in pairs}
        elif name == "RUN" and not words.startswith(OF_ROOT):
            type_line(words)
        else:
            assert name in ("FROM", "USER", "CMD", "RUN") or (name, words) == ("WORKDIR", "/opt/gpucourse"), name
