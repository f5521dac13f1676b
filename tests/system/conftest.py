"""Learners with simulated nodes. After every test, a check proves that nothing of them is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mock_aws.shared import account, shared_account
from tests.system import slurm, small_course
from tests.system.cli import Learner
from tests.university import University, run_university

__all__ = ["account", "shared_account"]  # the account that all tests of a file share


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[Learner]:
    """Yield a learner with an empty workspace. The workspace's path contains a space and quotes."""
    learner = Learner(tmp_path / 'it\'s my "work" space')
    learner.takes_ports()
    with learner.leaves_nothing():
        yield learner


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Yield a learner with two nodes, shared by the tests of a file that do not harm them."""
    learner = Learner(tmp_path_factory.mktemp("lab") / "workspace")
    learner.takes_ports()
    with learner.leaves_nothing():
        learner.types("deploy", "3")
        yield learner


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Yield a learner with the lab of module 2, a real Slurm, shared by the tests of a file."""
    learner = Learner(tmp_path_factory.mktemp("cluster") / "workspace")
    with learner.leaves_nothing():
        slurm.stand_up(learner)
        yield learner


@pytest.fixture(scope="session")
def university_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[University]:
    """Yield a university's cluster with accounting. The tests of a file share it, and leave nothing on it."""
    with run_university(tmp_path_factory.mktemp("university")) as university:
        yield university


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Yield a learner with a lab of the small course."""
    with small_course.deploy_small_course(tmp_path_factory.mktemp("learning")) as learner:
        yield learner
