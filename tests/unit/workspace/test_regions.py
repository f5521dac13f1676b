"""The regions that a workspace ever used."""

from __future__ import annotations

from pathlib import Path

from gpucourse.workspace import regions
from gpucourse.workspace.paths import WorkspacePaths


def test_note_remembers_a_region_once_in_the_order_of_first_use(tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path)
    assert regions.read_used_regions(paths) == ()
    for region in ("us-east-2", "us-west-2", "us-east-2"):
        regions.note(paths, region)
    assert regions.read_used_regions(paths) == ("us-east-2", "us-west-2")
