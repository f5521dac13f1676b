"""What showing a result needs is imported while the ranks are at work."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from contextlib import nullcontext
from gpucourse.cli.outcome import import_before_end
from gpucourse.model.event import LogBytes, Note
heard = []
watch = import_before_end(heard.append, lambda _part: nullcontext())
def ready(): return {"gpucourse.learning.next_", "gpucourse.ui.views.result", "rich.console"} & set(sys.modules)
events = [Note(text="x"), LogBytes(node="node0", rank=None, data=b"a"), LogBytes(node="node0", rank=0, data=b"b")]
counts = []
for event in events:
    watch(event)
    counts.append(len(ready()))
assert heard == events
print(counts)
"""


def test_the_first_words_of_a_rank_let_the_result_get_ready() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 0, 3]\n"
