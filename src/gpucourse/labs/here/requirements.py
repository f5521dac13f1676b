"""What a lab on this computer needs, for `doctor`: a GPU, and a Python that can use it."""

from __future__ import annotations

import sys

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.here.cards import list_cards, require_gpus
from gpucourse.model.cloud import Finding

SIMULATED = "gpucourse deploy 1 --target local"


def find_requirements(context: Context, *, meant: bool) -> list[Finding]:
    """Return the finding about this computer's GPU. If labs are not `meant` to be here, none is no error: simulated nodes need
    none. Then torch is loaded only if the driver lists a GPU, since that takes seconds."""
    if not (meant or list_cards(context.environ)):
        return [Finding(what="GPU", state="ok", detail="none in this computer; simulated nodes need none")]
    try:
        gpus = require_gpus(context.settings.node_python or sys.executable, context.environ, SIMULATED)
    except MissingError as error:
        return [Finding(what="GPU", state="missing" if meant else "warning", detail=error.what, mend=error.hint)]
    more = f" ({len(gpus)} of them)" if len(gpus) > 1 else ""
    return [Finding(what="GPU", state="ok", detail=f"{gpus[0]}{more}; use it: gpucourse deploy 1 --target here")]
