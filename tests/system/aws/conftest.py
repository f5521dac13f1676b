"""Learners with a mock AWS account.

Terraform's provider waits on the clock: tests of a file share a lab that it built. An account is forked for each test, which
costs a third less of a processor than to sweep one clean after each.
"""

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
