from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.context import Context
from tests.unit.labs.aws.fakes import context_in


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return context_in(tmp_path)[0]
