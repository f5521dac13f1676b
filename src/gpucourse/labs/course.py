"""Checks that the course itself is in order, for `doctor` on every target."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.model.cloud import Finding


def check_course(context: Context) -> Finding:
    """Check whether every module can be read."""
    broken = context.catalog.errors
    if broken:
        return Finding(
            what="course", state="missing", detail="; ".join(error.what for error in broken), mend="fix these manifests"
        )
    return Finding(what="course", state="ok", detail=f"{len(context.catalog.modules)} modules in {context.folders.modules}")
