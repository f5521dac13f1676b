"""The option `grade --rerun`: its confirmation, and the arguments that it refuses."""

from __future__ import annotations

from tests.learning import METRICS, Learning


def test_grade_rerun_without_yes_or_with_other_options_is_refused(learning: Learning) -> None:
    learning.record(metrics=METRICS | {"cuda": "12.8"}, mode="aws")
    path = str(learning.hand_in())
    result = learning.types("grade", "--rerun", path, code=2)
    assert "runs the learner's code on this computer" in " ".join(result.err.split())
    assert f"gpucourse grade --rerun {path} --yes" in result.err
    assert "cannot be combined" in learning.types("grade", "--rerun", path, "--csv", code=2).err
    assert "belong to --rerun" in learning.types("grade", "--yes", code=2).err
    result = learning.types("grade", "--rerun", path, "--yes", code=3)
    assert "it was measured on a GPU; simulated nodes have none" in " ".join(result.out.split())
    assert (
        "there is no run or part of '1.2'" in learning.types("grade", "--rerun", path, "--yes", "--exercise", "1.2", code=2).err
    )
