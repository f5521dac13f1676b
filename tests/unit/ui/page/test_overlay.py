from __future__ import annotations

from gpucourse.learning.pages.run_content import RunReader
from gpucourse.ui.page.overlay import NewestRuns
from tests.learning import MANIFEST, PLOT, Learning


def test_list_others_leaves_out_drills(learning: Learning) -> None:
    checks = "    checks:\n"
    learning.put("modules/01-rivers/module.yaml", MANIFEST.replace(checks, PLOT + checks, 1))
    run, other = learning.record(), learning.record()
    drill = learning.record(state="broken", drill=True)
    newest = NewestRuns([run, other, drill], RunReader(learning.open_context()))
    assert [item.record.id for item in newest.list_others(run)] == [other.id]
