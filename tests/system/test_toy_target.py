"""A target takes one file and its line in the registry: the commands know no target by its name."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.system.cli import Learner, Typed, finish

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = f"""\
import sys
sys.path.insert(0, {str(ROOT)!r})
from gpucourse.labs.target import TARGETS
TARGETS["toy"] = "tests.toy_target:ToyTarget"
from gpucourse.__main__ import run_command
sys.exit(run_command(sys.argv[1:]))
"""


class ToyLearner(Learner):
    """Somebody whose program has one more line in its registry."""

    def types(self, *words: str, code: int | None = 0, timeout: float = 120, **_other: Any) -> Typed:
        program = self.workspace.parent / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        fork = forks.Fork([sys.executable, str(program), *words], ROOT, self.environment, apart=True, library="gpucourse")
        typed = Typed(*finish(fork, timeout), words)
        assert typed.code == code, typed.err
        return typed


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[ToyLearner]:
    """An empty workspace; whatever is in the end is taken down."""
    made = ToyLearner(tmp_path / "w")
    made.takes_ports()
    yield made
    made.types("destroy", "--all", "--discard")


def test_a_target_of_one_file_does_what_every_target_does(learner: ToyLearner) -> None:
    assert "2 to create" in learner.types("deploy", "3", "--target", "toy", "--dry-run").out
    assert "Nothing is deployed" in learner.types("status").out
    assert "lab of module 3 is ready" in learner.types("deploy", "3", "--target", "toy").out
    [lab] = learner.documents("status")["stacks"]
    assert (lab["deployment"]["target"], lab["healthy"], len(lab["nodes"])) == ("toy", True, 2)
    learner.types("run", "3.1", "--launcher", "python", "--set", "elements=1000")
    run = learner.newest_run()
    assert (run["stack"], run["mode"], run["world_size"], run["verdict"]) == ("03-toy", "local", 2, "passed")
    assert "03-toy is not a lab on AWS: toys stand until they are put away" in learner.types("stop", "3", code=2).err
    learner.types("destroy", "3")
    [receipt] = [json.loads(path.read_text()) for path in (learner.workspace / "receipts").glob("*.json")]
    assert (receipt["stack"], receipt["removed"], receipt["leftovers"]) == ("03-toy", ["node0", "node1"], [])
    assert "Nothing is deployed" in learner.types("status").out


def test_the_registry_decides_what_can_be_named(learner: ToyLearner) -> None:
    assert "[local|aws|hosts|here|toy]" in learner.types("deploy", "--help").out
    refused = learner.types("run", "3.1", "--target", "moon", code=2).err
    assert "'moon' is not one of 'local', 'aws', 'hosts', 'here', 'toy'" in refused
    assert "--link: only for simulated nodes" in learner.types("deploy", "3", "--target", "toy", "--link", "1gbit", code=2).err
    settings = learner.workspace / "gpucourse.yaml"
    settings.write_text("target: moon\n")
    assert "target: Input should be 'local', 'aws', 'hosts', 'here' or 'toy'" in learner.types("deploy", "3", code=2).err
    settings.unlink()
