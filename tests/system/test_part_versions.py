"""Learners' versions of parts: `try` accepts right ones and refuses wrong ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.context import Context
from tests.system.part_versions import ALL, Versions, list_complaints, list_parameters, open_context

pytestmark = [pytest.mark.system]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """Yield a workspace and one judge for all versions."""
    with open_context(tmp_path_factory.mktemp("versions") / "workspace") as context:
        yield context


def test_versions_are_written_from_the_solution_and_differ() -> None:
    for name, versions in ALL.items():
        exercise, part = versions.find_part()
        texts = [version.write(versions.solution) for version in versions.versions]
        assert name == f"{exercise.id}-{Path(part.file).stem}"
        assert len({*texts, versions.solution}) == len(texts) + 1, name
        assert [version.name for version in versions.versions if version.right == bool(version.fault)] == []


@pytest.mark.slow
@pytest.mark.parametrize("versions", list_parameters())
def test_try_accepts_right_versions_and_refuses_wrong_ones_for_their_fault(context: Context, versions: Versions) -> None:
    assert list_complaints(context, versions) == []
