"""What showing a result needs is imported while torchrun still closes down."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from gpucourse.cli.outcome import import_before_end
from gpucourse.model.event import Note, RankEvent
heard = []
watch = import_before_end(heard.append)
def ready(): return {"gpucourse.learning.next_", "gpucourse.ui.views.result", "rich.console"} & set(sys.modules)
events = [Note(text="x"), RankEvent(node="node0", rank=0, code=1), RankEvent(node="node0", rank=0, code=0)]
counts = []
for event in events:
    watch(event)
    counts.append(len(ready()))
assert heard == events
print(counts)
"""


def test_a_rank_that_ended_well_lets_the_result_get_ready() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 0, 3]\n"
