from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import TerraformFailed
from gpucourse.labs.destroy import take_down
from gpucourse.model.deployment import Leftover, LocalDeployment, Receipt
from gpucourse.model.event import Watcher
from tests.unit.labs.records import record


class Lab:
    """A lab of one process, which `down` removes unless it fails."""

    def __init__(self, *, fails: bool, stays: bool) -> None:
        self.fails, self.stays, self.runs = fails, stays, True

    def list_existing(self) -> list[str]:
        return ["node0"]

    def down(self, _watcher: Watcher) -> list[str]:
        if self.fails:
            raise TerraformFailed("no state")
        self.runs = self.stays
        return ["node0"]

    def scan_leftovers(self) -> list[Leftover]:
        return [Leftover(kind="process", id="7", remove="kill 7")] if self.runs else []

    def end_everything(self) -> None:
        self.runs = False


@pytest.mark.parametrize(
    ("fails", "stays", "names", "swept"),
    [(False, False, ["node0"], []), (False, True, ["node0"], ["process 7"]), (True, True, [], [])],
)
def test_take_down_ends_what_down_has_missed(
    context: Context, fails: bool, stays: bool, names: list[str], swept: list[str]
) -> None:
    lab = record(context, LocalDeployment, "local")
    receipt = Receipt(stack=lab.stack, uid="u", module="3", mode="local", created="", destroyed="")
    take_down(context, lab, receipt, Lab(fails=fails, stays=stays))
    assert (receipt.existed, receipt.removed, receipt.swept, receipt.leftovers) == (["node0"], names, swept, [])
