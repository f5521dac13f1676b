from __future__ import annotations

from tests.learning import Learning


def test_runs_of_an_exercise_leaves_out_the_others(learning: Learning) -> None:
    run = learning.record()
    assert "1.2 has no run yet.\n\nNext: gpucourse run 1.2" in learning.types("runs", "1.2").out
    learning.record("1.2")
    assert [item["id"] for item in learning.types("runs", "1.1", "--json").document["runs"]] == [run.id]
    assert "Next: gpucourse answer 1.1" in learning.types("runs").out
    assert len(learning.types("runs", "--json").document["runs"]) == 2
    newest_run = learning.record("1.2")
    assert [item["id"] for item in learning.types("runs", "--limit", "1", "--json").document["runs"]] == [newest_run.id]


def test_runs_of_a_script_lists_its_runs_or_says_that_there_is_none(learning: Learning) -> None:
    learning.record()
    run = learning.record(own_script="/home/me/train.py")
    for name in ("train.py", "/home/me/train.py"):
        assert [item["id"] for item in learning.types("runs", name, "--json").document["runs"]] == [run.id]
    result = learning.types("runs", "/tmp/bad.py", code=2)
    assert "/tmp/bad.py has no run yet" in result.err
    assert "gpucourse run --script /tmp/bad.py" in result.err
