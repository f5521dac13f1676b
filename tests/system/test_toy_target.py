"""A target needs one file and one line in the registry. Commands contain no target's name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpucourse.labs.target import TARGETS
from tests.ports import take_ports
from tests.unit.cli.conftest import Answer, type_line, workspace

__all__ = ["type_line", "workspace"]  # the fixtures

pytestmark = pytest.mark.system


@pytest.fixture
def type_toy(
    type_line: Callable[..., Answer], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Answer]]:
    """Yield a function that types words to a program with one more target. Labs that are still deployed at the end are
    destroyed.
    """
    monkeypatch.setitem(TARGETS, "toy", "tests.toy_target:ToyTarget")
    ports = take_ports(4)
    workspace.mkdir()
    (workspace / "gpucourse.yaml").write_text(f"rendezvous_ports: {ports[0]}-{ports[-1]}\n")
    yield type_line
    assert type_line("destroy", "--all", "--discard").code == 0


@pytest.mark.slow
def test_target_of_one_file_deploys_runs_and_destroys(type_toy: Callable[..., Answer], workspace: Path) -> None:
    assert "2 to create" in type_toy("deploy", "3", "--target", "toy", "--dry-run").out
    assert "lab of module 3 is ready" in type_toy("deploy", "3", "--target", "toy").out
    [lab] = json.loads(type_toy("status", "--json").out)["stacks"]
    assert (lab["deployment"]["target"], lab["healthy"], len(lab["nodes"])) == ("toy", True, 2)
    (workspace / "hello.py").write_text("print('hello')\n")
    assert type_toy("run", "--script", str(workspace / "hello.py"), "--launcher", "python", "--nodes", "2").code == 0
    [record] = workspace.glob("runs/scripts/hello.py/*/run.json")
    run = json.loads(record.read_text())
    assert (run["stack"], run["mode"], run["world_size"], run["state"]) == ("03-toy", "local", 2, "succeeded")
    assert "03-toy is not a lab on AWS: toys stand until they are put away" in type_toy("stop", "3").err
    assert type_toy("destroy", "3").code == 0
    [receipt] = [json.loads(path.read_text()) for path in (workspace / "receipts").glob("*.json")]
    assert (receipt["stack"], receipt["removed"], receipt["leftovers"]) == ("03-toy", ["node0", "node1"], [])
    assert "Nothing is deployed" in type_toy("status").out


def test_registry_decides_which_targets_can_be_named(type_toy: Callable[..., Answer], workspace: Path) -> None:
    assert (
        "'moon' is not one of 'local', 'aws', 'hosts', 'here', 'slurm', 'toy'" in type_toy("run", "3.1", "--target", "moon").err
    )
    assert "--link: only for simulated nodes" in type_toy("deploy", "3", "--target", "toy", "--link", "1gbit").err
    settings = workspace / "gpucourse.yaml"
    settings.write_text("target: moon\n")
    assert "target: Input should be 'local', 'aws', 'hosts', 'here', 'slurm' or 'toy'" in type_toy("deploy", "3").err
    settings.unlink()
