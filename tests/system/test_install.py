"""install.py against two package indexes on loopback, with pip itself: which build of torch comes, and what the user reads."""

from __future__ import annotations

import hashlib
import http.server
import os
import platform
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import install
import pytest

from tests.waiting import STUCK_S

ROOT = Path(install.__file__).parent
VERSION = install.pinned_version("torch")
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
SIZE_OF_A_CPU_BUILD = 3_000_000
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(platform.system() != "Linux", reason="builds of torch differ by index on Linux alone"),
    pytest.mark.skipif(install.has_nvidia_card(), reason="this machine has an NVIDIA card"),
]
# A project that pip can install with nothing from any index but torch.
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
BACKEND = """
import pathlib
EXTRA = "Provides-Extra: local\\nRequires-Dist: torch>=2; extra == 'local'\\n"
def prepare_metadata_for_build_editable(folder, config_settings=None):
    info = pathlib.Path(folder, "gpucourse-0.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: gpucourse\\nVersion: 0\\n" + EXTRA)
    (info / "WHEEL").write_text("Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    return info.name
def build_editable(folder, config_settings=None, metadata_directory=None):
    raise NotImplementedError
build_wheel = build_editable
prepare_metadata_for_build_wheel = prepare_metadata_for_build_editable
"""


def write_wheel(folder: Path, name: str, version: str, tag: str, requires: str = "", padding: int = 0) -> None:
    """A wheel with nothing in it but its metadata, listed in the folder's page as an index lists it."""
    page = folder / name
    page.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    wheel, info = page / f"{stem}-{tag}.whl", f"{stem}.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}")
        file.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: {tag}\n")
        file.writestr(f"{info}/padding", bytes(padding))
        file.writestr(f"{info}/RECORD", "")
    links = [f'<a href="{path.name.replace("+", "%2B")}">{path.name}</a>' for path in page.glob("*.whl")]
    (page / "index.html").write_text("<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, without a word about it."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """A package index on loopback; its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def ordinary(tmp_path: Path) -> Iterator[str]:
    """An index as PyPI is: torch there brings CUDA."""
    tag = f"{TAG}-{TAG}-manylinux_2_17_{platform.machine()}"
    write_wheel(tmp_path / "ordinary", "torch", VERSION, tag, "Requires-Dist: nvidia-cublas\n")
    write_wheel(tmp_path / "ordinary", "nvidia-cublas", "13", "py3-none-any")
    write_wheel(tmp_path / "ordinary", "held", "1", "py3-none-any")
    with serve(tmp_path / "ordinary") as address:
        yield address


def write_cpu_build(folder: Path, tag: str = TAG) -> None:
    wheel_tag = f"{tag}-{tag}-manylinux_2_17_{platform.machine()}"
    write_wheel(folder, "torch", f"{VERSION}+cpu", wheel_tag, padding=SIZE_OF_A_CPU_BUILD)


@pytest.fixture
def cpu_index(tmp_path: Path) -> Iterator[str]:
    """An index as PyTorch's own of CPU builds is."""
    write_cpu_build(tmp_path / "cpu")
    with serve(tmp_path / "cpu") as address:
        yield address


def run_pip(ordinary: str, *words: str | Path, path: Path | None = None, code: int = 0, **environ: str) -> str:
    """Run a command that ends in pip, which knows one index alone and installs nothing; what it printed."""
    folders = [str(path)] if path else []
    environment = {
        "PATH": os.pathsep.join([*folders, os.environ["PATH"]]),
        "HOME": os.devnull,  # pip asks rustc for its version, and rustup makes HOME where it can
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": ordinary,
        "PIP_DRY_RUN": "1",
        "PIP_IGNORE_INSTALLED": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_RETRIES": "0",
        **environ,
    }
    done = subprocess.run(
        [str(word) for word in words], env=environment, capture_output=True, text=True, timeout=STUCK_S, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def checkout(tmp_path: Path, ordinary: str) -> Path:  # writes the wheel that the list names
    """install.py, its list and its constraints in a checkout whose project needs torch alone."""
    folder = tmp_path / "check out"
    folder.mkdir()
    shutil.copy(ROOT / "install.py", folder)
    (folder / "constraints.txt").write_text(f"torch=={VERSION}\n")
    held = (tmp_path / "ordinary" / "held" / "held-1-py3-none-any.whl").read_bytes()
    (folder / "requirements.lock").write_text(f"held==1 --hash=sha256:{hashlib.sha256(held).hexdigest()}\n")
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "backend.py").write_text(BACKEND)
    return folder


def list_installed(output: str) -> set[str]:
    """Return what pip would install last: torch and what it needs."""
    return set(re.findall(r"Would install (.*)", output)[-1].split()) - {"gpucourse-0"}


def test_wrong_checksum_of_a_package_ends_the_installation(ordinary: str, checkout: Path) -> None:
    (checkout / "requirements.lock").write_text(f"held==1 --hash=sha256:{'0' * 64}\n")
    output = run_pip(ordinary, sys.executable, checkout / "install.py", "local", code=1)
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in output
    assert "requirements.lock could not be installed" in output
    assert "torch" not in output.partition("requirements.lock could not be installed")[0]


@pytest.mark.slow
def test_commands_of_the_readme_bring_the_cpu_build_with_its_size(ordinary: str, cpu_index: str, checkout: Path) -> None:
    commands = set(re.findall(r"`(python install\.py [^`]+)`", (ROOT / "README.md").read_text()))
    assert "python install.py local" in commands
    for command in commands:
        _, script, *words = shlex.split(command)
        output = run_pip(ordinary, sys.executable, checkout / script, *words, GPUCOURSE_TORCH_INDEX=cpu_index)
        assert f"torch: the CPU build of {VERSION} from {cpu_index}, 3 MB" in output
        assert list_installed(output) == {f"torch-{VERSION}+cpu"}, command
        assert "Would install held-1" in output


@pytest.mark.slow
def test_line_for_other_versions_brings_the_cpu_build(ordinary: str, cpu_index: str, checkout: Path) -> None:
    """With both indexes pip takes the highest version, and 2.13.0+cpu sorts above 2.13.0."""
    (checkout / "requirements.lock").write_text("nowhere==1 --hash=sha256:" + "0" * 64)
    output = run_pip(ordinary, sys.executable, checkout / "install.py", "local", code=1, GPUCOURSE_TORCH_INDEX=cpu_index)
    line = shlex.split(output.splitlines()[-1])
    assert list_installed(run_pip(ordinary, *line)) == {f"torch-{VERSION}+cpu"}


def test_python_without_pip_names_the_cure(ordinary: str, checkout: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(checkout / "bare")], check=True, timeout=STUCK_S)
    python = checkout / "bare" / "bin" / "python"
    assert (
        run_pip(ordinary, python, checkout / "install.py", "local", code=3) == f"{python} has no pip: {python} -m ensurepip\n"
    )


def put_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Put a program first on PATH that ends with this code, as the one of the driver does if it finds a card or none."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def test_choose_torch_takes_the_build_with_cuda_for_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_nvidia_smi(tmp_path, monkeypatch, 0)
    assert install.choose_torch("http://nowhere.invalid") == (
        [],
        "this machine has an NVIDIA card, so the build with CUDA comes: several gigabytes",
    )


def test_choose_torch_takes_the_cpu_build_when_nvidia_smi_finds_no_card(
    cpu_index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_nvidia_smi(tmp_path, monkeypatch, 6)
    assert install.choose_torch(cpu_index)[0] == ["--extra-index-url", cpu_index]


def test_choose_torch_takes_the_index_of_pip_when_the_other_has_no_build_for_this_python(tmp_path: Path) -> None:
    write_cpu_build(tmp_path / "old", "cp38")
    with serve(tmp_path / "old") as index:
        options, sentence = install.choose_torch(index)
    assert options == []
    assert f"it lists no torch {VERSION}+cpu for {TAG}" in sentence
    assert "pip's own index is used instead" in sentence


def test_choose_torch_takes_the_index_of_pip_when_the_other_is_a_sign_in_page(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "index.html").write_text("<html>Welcome to this hotel. Please sign in.</html>")
    with serve(tmp_path) as index:
        assert install.choose_torch(index)[0] == []


@pytest.mark.parametrize("listens", [True, False], ids=["never answers", "refuses"])
def test_choose_torch_takes_the_index_of_pip_when_the_other_is_out_of_reach(listens: bool) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listens:
            server.listen()
        options, sentence = install.choose_torch(f"http://127.0.0.1:{server.getsockname()[1]}", patience_s=0.2)
    assert options == []
    assert "cannot give its CPU build (" in sentence
