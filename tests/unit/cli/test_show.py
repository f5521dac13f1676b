"""The command `show`: an exercise with the learner's parts."""

from __future__ import annotations

from tests.learning import FOLDER, MANIFEST, METRICS, Learning
from tests.unit.learning.test_try import RIGHT, STUB, YOURS, own, put_parts, write


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


def test_show_with_solution_waits_for_a_right_part_and_a_run_that_passed(learning: Learning) -> None:
    put_parts(learning)
    learning.put(f"modules/{FOLDER}/module.yaml", MANIFEST + YOURS.partition("      - {id: dry")[0])
    solutions = {"solutions": STUB.replace("raise", "return n + n  #"), "solutions/other": "def double(n):\n    return n * 2\n"}
    write(learning, RIGHT)
    message = learning.types("show", "1.2", "--solution", code=3).err
    assert "1.2 still needs a part that is right and a run that passed" in message
    assert "gpucourse try 1.2" in message
    learning.types("try", "1.2")
    assert "1.2 still needs a run that passed" in learning.types("show", "1.2", "--solution", code=3).err
    learning.record("1.2")
    assert "gpucourse show 1.2 --solution" in learning.types("show", "1.2").out
    assert "this course has no solution of my_double.py" in learning.types("show", "1.2", "--solution", code=3).err
    for folder, solution in solutions.items():
        learning.put(f"exercises/{FOLDER}/{folder}/my_double.py", solution)
    output = learning.types("show", "1.2", "--solution").out
    assert "-     return 2 * n" in output
    assert "+     return n + n" in output
    write(learning, solutions["solutions"])
    learning.types("try", "1.2")
    assert "+     return n * 2" in learning.types("show", "1.2", "--solution").out, "the solution that is not the learner's"
