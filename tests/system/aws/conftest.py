"""Learners with a mock AWS account. Terraform's provider waits on the clock: tests of a file share a lab where they can."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.aws.learner import CloudLearner, cloud_learner


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[CloudLearner]:
    """Somebody with an empty workspace and an empty account."""
    with cloud_learner(tmp_path) as learner:
        yield learner


@pytest.fixture(scope="module")
def neighbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    """The same, shared by the tests of a file."""
    with cloud_learner(tmp_path_factory.mktemp("cloud")) as other_learner:
        yield other_learner
