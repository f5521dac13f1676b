from __future__ import annotations

from gpucourse.ui.views import trust
from tests.unit.ui.examples import text


def test_trust_list_shows_the_folders_or_that_there_is_none() -> None:
    assert "None: only workspaces and courses of your own are used." in text(trust.trust_list([]))
    shown = text(trust.trust_list(["/home/ann/[bold]course"]))
    assert "/home/ann/[bold]course" in shown
    assert "Remove one: gpucourse trust --remove DIR" in shown
