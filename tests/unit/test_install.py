"""The lists of packages have a version and checksums for all that the course needs but for torch; words are read right."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

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


def make_markers(version: str, system: str, machine: str) -> dict[str, str]:
    """Return what markers see on such a computer."""
    own = {name: str(value) for name, value in default_environment().items()}
    names = {"linux": "Linux", "darwin": "Darwin"}
    return own | {
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
    """Return what pyproject.toml asks for, without torch, and what builds the project."""
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
