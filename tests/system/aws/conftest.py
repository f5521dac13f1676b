"""Learners with a mock AWS account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.aws import hand_made
from tests.system.aws.learner import CloudLearner, cloud_learner


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[CloudLearner]:
    """Yield a learner with an empty workspace and an empty account."""
    with cloud_learner(tmp_path) as learner:
        yield learner


@pytest.fixture(scope="module")
def shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    """Yield a learner with a lab of two nodes."""
    with cloud_learner(tmp_path_factory.mktemp("lab")) as learner:
        hand_made.lab(learner, nodes=2)
        yield learner


@pytest.fixture
def lab_owner(shared_lab: CloudLearner) -> Iterator[CloudLearner]:
    """Yield the same learner for a test that keeps the two nodes. The record and the settings are then restored, and the
    account is undisturbed.
    """
    files = [shared_lab.workspace / ".gpucourse/deployments/03-aws-t4.json", shared_lab.workspace / "gpucourse.yaml"]
    texts = [file.read_text(encoding="utf-8") for file in files]
    yield shared_lab
    shared_lab.account.calm()
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    assert len(hand_made.ids(shared_lab)) == 2
