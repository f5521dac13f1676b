"""requirements.lock: a version and checksums for all that the course needs on the learner's computer, but for torch."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

import install
import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement

from tests import pythons

TEXT = install.LOCK.read_text(encoding="utf-8")
PACKAGE = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]+?))?"
    r"(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n",
    re.MULTILINE,
)
SYSTEMS = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")]


def environment(version: str, system: str, machine: str) -> dict[str, str]:
    """What markers see on such a computer."""
    own = {name: str(value) for name, value in default_environment().items()}
    names = {"linux": "Linux", "darwin": "Darwin"}
    return own | {
        "python_version": version,
        "python_full_version": f"{version}.1",
        "sys_platform": system,
        "platform_machine": machine,
        "platform_system": names[system],
    }


def versions_there(there: Mapping[str, str]) -> dict[str, str]:
    """The version of each package on such a computer."""
    lines = [line for line in PACKAGE.finditer(TEXT) if line["marker"] is None or Marker(line["marker"]).evaluate(dict(there))]
    return {line["name"]: line["version"] for line in lines}


def list_requirements() -> list[Requirement]:
    """What pyproject.toml asks for, without torch, and what builds the project."""
    document = tomllib.loads((install.HERE / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["local"], *document["build-system"]["requires"]]
    return [requirement for line in lines if (requirement := Requirement(line)).name != "torch"]


def test_every_line_is_a_package_with_checksums() -> None:
    rest = PACKAGE.sub("", "\n".join(line for line in TEXT.splitlines() if not line.startswith("#")) + "\n")
    assert rest == ""


def test_no_index_and_no_build_of_torch_is_named() -> None:
    names = [line["name"] for line in PACKAGE.finditer(TEXT)]
    assert "://" not in TEXT
    assert not re.search(r"^\s*-", re.sub(r"^    --hash=.*$", "", TEXT, flags=re.MULTILINE), re.MULTILINE), "no option of pip"
    assert [name for name in names if name.startswith(("torch", "triton", "nvidia", "cuda"))] == []


def test_triton_has_a_lock_of_its_own_with_the_pinned_version() -> None:
    text = (install.HERE / "requirements-kernels.lock").read_text(encoding="utf-8")
    (line,) = PACKAGE.finditer(text)
    assert PACKAGE.sub("", "".join(row for row in text.splitlines(keepends=True) if not row.startswith("#"))) == ""
    extras = tomllib.loads((install.HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert f"{line['name']}=={line['version']}; {line['marker']}" == extras["kernels"][0]
    assert line["hashes"].count("sha256:") == 2 * len(pythons.list_promised_versions()), "for two kinds of processor"


@pytest.mark.parametrize("version", pythons.list_promised_versions())
@pytest.mark.parametrize(("system", "machine"), SYSTEMS)
def test_all_that_is_needed_is_there(version: str, system: str, machine: str) -> None:
    there = environment(version, system, machine)
    versions = versions_there(there)
    for requirement in list_requirements():
        if requirement.marker is None or requirement.marker.evaluate(dict(there)):
            assert requirement.specifier.contains(versions[requirement.name.lower()]), requirement
    assert versions["transformers"] == install.pinned_version("transformers")
