"""install.py: the build of torch, the requirements for pip, and the lists of packages with their checksums."""

from __future__ import annotations

import http.server
import importlib.util
import os
import platform
import re
import shlex
import socket
import sys
import threading
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import install
import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement

TEXT = install.LOCK.read_text(encoding="utf-8")
PACKAGE = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]+?))?"
    r"(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n",
    re.MULTILINE,
)
DOCUMENT = tomllib.loads((install.HERE / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = DOCUMENT["project"]
VERSIONS = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)

TORCH = install.pinned_version("torch")
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
WHEEL = f"torch-{TORCH}+cpu-{TAG}-{TAG}-manylinux_2_17_{platform.machine()}.whl"


def make_markers(version: str, system: str, machine: str) -> dict[str, str]:
    """Return the values of environment markers on such a computer."""
    markers = {name: str(value) for name, value in default_environment().items()}
    names = {"linux": "Linux", "darwin": "Darwin"}
    return markers | {
        "python_version": version,
        "python_full_version": f"{version}.1",
        "sys_platform": system,
        "platform_machine": machine,
        "platform_system": names[system],
    }


def read_locked_versions(markers: Mapping[str, str]) -> dict[str, str]:
    """Return the version of each package on such a computer."""
    lines = [
        line for line in PACKAGE.finditer(TEXT) if line["marker"] is None or Marker(line["marker"]).evaluate(dict(markers))
    ]
    return {line["name"]: line["version"] for line in lines}


def list_requirements() -> list[Requirement]:
    """Return the requirements in pyproject.toml, without torch, and the build requirements."""
    lines = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["local"], *DOCUMENT["build-system"]["requires"]]
    return [requirement for line in lines if (requirement := Requirement(line)).name != "torch"]


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-kernels.lock"])
def test_lock_has_nothing_but_packages_with_checksums(name: str) -> None:
    lines = (install.HERE / name).read_text(encoding="utf-8").splitlines(keepends=True)
    assert PACKAGE.sub("", "".join(line for line in lines if not line.startswith("#"))) == ""


def test_lock_names_no_index_and_no_build_of_torch() -> None:
    names = [line["name"] for line in PACKAGE.finditer(TEXT)]
    assert "://" not in TEXT
    assert [name for name in names if name.startswith(("torch", "triton", "nvidia", "cuda"))] == []


def test_lock_of_kernels_has_the_pinned_triton_for_each_python_and_processor() -> None:
    (line,) = PACKAGE.finditer((install.HERE / "requirements-kernels.lock").read_text(encoding="utf-8"))
    assert f"{line['name']}=={line['version']}; {line['marker']}" == PROJECT["optional-dependencies"]["kernels"][0]
    assert line["hashes"].count("sha256:") == 2 * len(VERSIONS)


@pytest.mark.parametrize(("system", "machine"), [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")])
def test_lock_has_all_that_is_needed(system: str, machine: str) -> None:
    for version in VERSIONS:
        markers = make_markers(version, system, machine)
        versions = read_locked_versions(markers)
        for requirement in list_requirements():
            if requirement.marker is None or requirement.marker.evaluate(dict(markers)):
                assert requirement.specifier.contains(versions[requirement.name.lower()]), requirement
        assert versions["transformers"] == install.pinned_version("transformers")


@pytest.mark.parametrize(
    "words",
    [
        ["local", "kernels"],
        ["local,", "kernels"],
        ["local", "-q", "kernels"],
        ["local", "--quiet", "--no-cache-dir", "--timeout", "9", "--retries=0", "kernels"],
    ],
)
def test_find_package_finds_an_extra_after_a_space(words: list[str]) -> None:
    assert install.find_package(words) == "kernels"
    assert install.find_package(words[:-1]) is None


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Record what pip would install. It fails if its last word says so."""
    calls: list[tuple[str, ...]] = []

    def run_pip(*words: str) -> int:
        calls.append(words)
        return int(words[-1] == "fails")

    monkeypatch.setattr(install, "run_pip", run_pip)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())  # else setuptools warns if torch was imported
    monkeypatch.setattr(install, "choose_torch", lambda _index: (["--extra-index-url", "http://cpu"], "the CPU build"))
    return calls


def test_main_installs_the_locked_packages_by_their_checksums_then_the_checkout(
    pip: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert install.main(["local", "--quiet"]) == 0
    *dependency_calls, checkout = pip
    assert all("--require-hashes" in words and "--quiet" in words for words in dependency_calls)
    assert str(install.LOCK) in dependency_calls[-1]
    assert {"--extra-index-url", "--constraint", f"{install.HERE}[local]"} <= set(checkout)
    assert capsys.readouterr().out == "torch: the CPU build\n"


def test_main_shows_the_line_for_other_versions_when_a_checksum_is_wrong(
    pip: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert install.main(["local", "--no-index", "--index-url", "fails"]) == 1
    assert len(pip) == 1, "nothing else is installed"
    error = capsys.readouterr().err
    assert "requirements.lock could not be installed" in error
    assert error.endswith(f"-m pip install --extra-index-url http://cpu --editable {shlex.quote(f'{install.HERE}[local]')}\n")


def test_main_names_the_remedy_without_pip(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    assert install.main(["local"]) == 3
    assert capsys.readouterr().err == f"{sys.executable} has no pip: {sys.executable} -m ensurepip\n"


@pytest.mark.parametrize(("code", "card"), [(0, True), (6, False)])
def test_has_nvidia_card_asks_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, card: bool) -> None:
    if Path("/proc/driver/nvidia").exists() or Path("/dev/nvidia0").exists():
        pytest.skip("this machine has an NVIDIA card")
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert install.has_nvidia_card() is card


@pytest.fixture
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up a Linux machine without a GPU."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(install, "has_nvidia_card", lambda: False)


@contextmanager
def serve(folder: Path, page: str) -> Iterator[str]:
    """Serve a package index with this page about torch and a wheel of three megabytes, and return its address."""
    (folder / "torch").mkdir()
    (folder / "torch" / "index.html").write_text(page)
    (folder / "torch" / WHEEL).write_bytes(bytes(3_000_000))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.usefixtures("linux")
def test_choose_torch_takes_the_cpu_build_with_its_size(tmp_path: Path) -> None:
    with serve(tmp_path, f'<a href="{WHEEL.replace("+", "%2B")}">torch</a>') as index:
        assert install.choose_torch(index) == (["--extra-index-url", index], f"the CPU build of {TORCH} from {index}, 3 MB")


@pytest.mark.usefixtures("linux")
@pytest.mark.parametrize("page", [f'<a href="{WHEEL.replace(TAG, "cp38")}">torch</a>', "Welcome to this hotel."])
def test_choose_torch_takes_the_index_of_pip_when_the_other_has_no_such_build(tmp_path: Path, page: str) -> None:
    with serve(tmp_path, page) as index:
        options, sentence = install.choose_torch(index)
    assert options == []
    assert f"it lists no torch {TORCH}+cpu for {TAG}" in sentence
    assert "pip's own index is used instead" in sentence


@pytest.mark.usefixtures("linux")
@pytest.mark.parametrize("listens", [True, False], ids=["never answers", "refuses"])
def test_choose_torch_takes_the_index_of_pip_when_the_other_is_out_of_reach(listens: bool) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listens:
            server.listen()
        options, sentence = install.choose_torch(f"http://127.0.0.1:{server.getsockname()[1]}", patience_s=0.2)
    assert options == []
    assert "cannot give its CPU build (" in sentence
