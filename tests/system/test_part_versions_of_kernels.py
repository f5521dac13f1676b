"""Learners' versions of the parts of module 5: `try` accepts right ones and refuses wrong ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpucourse.context import Context
from tests.system.part_versions import Versions, list_complaints, list_parameters, open_context

pytestmark = [pytest.mark.system, pytest.mark.slow]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """Yield a workspace and one judge for all versions."""
    with open_context(tmp_path_factory.mktemp("versions") / "workspace") as context:
        yield context


@pytest.mark.parametrize("versions", list_parameters("5"))
def test_try_accepts_right_versions_and_refuses_wrong_ones_for_their_fault(context: Context, versions: Versions) -> None:
    assert list_complaints(context, versions) == []
