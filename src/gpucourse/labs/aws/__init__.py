"""Labs on AWS. Before a lab is built, its price is shown and the user confirms it; the lab ends at a deadline; afterwards a
scan checks that it is gone.

The modules of this package are imported when they are first used, because `status` opens every target, and few commands need
every module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpucourse.labs.aws import build as build
    from gpucourse.labs.aws import change as change
    from gpucourse.labs.aws import cost as cost
    from gpucourse.labs.aws import doctor as doctor
    from gpucourse.labs.aws import extend as extend
    from gpucourse.labs.aws import leaks as leaks
    from gpucourse.labs.aws import ledger as ledger
    from gpucourse.labs.aws import plan as plan
    from gpucourse.labs.aws import status as status
    from gpucourse.labs.aws import stop_start as stop_start
    from gpucourse.labs.aws import take_down as take_down
    from gpucourse.labs.aws import termination_reason as termination_reason
else:
    from importlib import import_module
    from importlib.util import find_spec

    def __getattr__(name: str) -> object:
        if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
