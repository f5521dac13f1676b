"""Bundles between two workspaces; hostile ones are in test_bundle_hostile.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.errors import UsageError
from gpucourse.learning.bundle import check_reviewer, open_bundle, pack
from gpucourse.workspace import runs
from tests.learning import Learning


def test_check_reviewer_in_the_workspace_that_made_the_bundle_is_refused(learning: Learning) -> None:
    learning.record()
    path = learning.root / "work.zip"
    assert pack(learning.context, path, by="Noah").by == "Noah"
    with open_bundle(learning.context, path) as bundle:
        with pytest.raises(UsageError, match="a review of your own work would not count"):
            check_reviewer(learning.context.workspace, bundle)
        check_reviewer(replace(learning.context.workspace, id="another"), bundle)
        assert bundle.changed == ()
        assert [record.exercise for record in runs.every(bundle.context.paths)] == ["1.1"]
