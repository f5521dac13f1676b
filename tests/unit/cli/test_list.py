from __future__ import annotations

from tests.learning import Learning


def test_list_uses_the_words_of_show_and_grade(learning: Learning) -> None:
    learning.record()
    output = " ".join(learning.types("list").out.split())
    assert "exercise min ran yours answered 1.1 Source 20 ✓ passed (simulated) –" in output
    assert "1 of 2 exercises passed, 0 done." in output
    assert "signs ✓ ran – answered" in " ".join(learning.types("show", "1.1").out.split())
    assert "0 of 2 exercises done: ran 1, yours 0, answered 0" in learning.types("grade").out


def test_list_json_has_points_and_signs_of_each_exercise(learning: Learning) -> None:
    learning.record()
    (module,) = learning.types("list", "--json").document["modules"]
    first, second = module["exercises"]
    assert (module["points"], first["verdict"], first["signs"]["ran"]) == (25, "passed", True)
    assert (second["verdict"], second["signs"]["ran"]) == (None, False)
