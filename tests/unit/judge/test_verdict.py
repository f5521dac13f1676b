from __future__ import annotations

import pickle

from gpucourse.judge.verdict import Verdict


def test_verdict_is_complete_in_another_process() -> None:
    copy = pickle.loads(pickle.dumps(Verdict("failed", "doubled", "you gave 4", "n = 1")))
    assert (copy.word, copy.way, copy.says, copy.case) == ("failed", "doubled", "you gave 4", "n = 1")
