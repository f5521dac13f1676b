"""The trusted folders of other users, on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.ui.tables import Items, Paragraph, View


def trust_list(folders: Sequence[str]) -> View:
    """Show the list, or say that it is empty."""
    if not folders:
        return View(title="Trusted folders", blocks=[Paragraph("None: only workspaces and courses of your own are used.")])
    return View(title="Trusted folders", blocks=[Items(folders)], footer=["Remove one: gpucourse trust --remove DIR"])
