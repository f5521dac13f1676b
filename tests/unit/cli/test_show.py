"""The command `show`: an exercise with the learner's parts."""

from __future__ import annotations

from tests.learning import METRICS, Learning
from tests.unit.learning.test_try import RIGHT, own, put_parts, write


def test_show_lists_the_parts_with_file_and_state(learning: Learning) -> None:
    put_parts(learning)
    write(learning, RIGHT)
    learning.types("try", "1.2")
    output = learning.types("show", "1.2").out
    assert "Your part: Twice" in output
    assert str(own(learning)) in output
    assert "so far  right" in output


def test_show_of_a_run_has_its_result_again(learning: Learning) -> None:
    first = learning.record()
    learning.record(metrics=METRICS | {"wet": False})
    document = learning.types("show", "1.1", "--run", first.id, "--json").document
    assert (document["run"]["id"], document["verdict"]["verdict"]) == (first.id, "passed")
    assert document["folder"] == str(learning.folder(first))
    assert f"{first.id}, 1 rank on 1 node" in learning.types("show", "1.1", "--run", first.id).out
