from __future__ import annotations

import pytest

from tests.learning import Learning


def test_list_uses_the_words_of_show_and_grade(learning: Learning) -> None:
    learning.record()
    output = " ".join(learning.types("list").out.split())
    assert (
        "time ran yours answered points 1 Rivers 1.5 h 1/2 0/1 2.5 of 20 → 1.1 Source 20 min ✓ – 1.2 Mouth 20 min –" in output
    )
    assert "0 of 2 exercises done. 10 of 25 points, whole course: 2.5 of 20 · 12 %: gpucourse grade" in output
    assert "Next: gpucourse answer 1.1" in output
    assert "signs ✓ ran – answered" in " ".join(learning.types("show", "1.1").out.split())
    assert "0 of 2 exercises done: ran 1, yours 0, answered 0" in learning.types("grade").out
    learning.put("modules/rubric.yaml", "format: 2\n")
    output = learning.types("list", code=2).out
    assert "→ 1.1 Source 20 min ✓" in " ".join(output.split())
    assert "modules/rubric.yaml: format: " in output


def test_list_json_has_points_and_signs_of_each_exercise(learning: Learning) -> None:
    learning.record()
    (module,) = learning.types("list", "--json").document["modules"]
    first, second = module["exercises"]
    assert (module["points"], first["verdict"], first["signs"]["ran"]) == (20, "passed", True)
    assert (second["verdict"], second["signs"]["ran"]) == (None, False)


def test_list_fits_a_screen_and_all_shows_every_exercise(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUCOURSE_COURSE")
    output = learning.types("list").out
    assert len(output.splitlines()) <= 24
    assert "→  0.1  Tiny transformer" in output
    assert "DDP training" not in output
    assert "Local foundations 3 h 0/3 0/3 0/3 0 of 30" in " ".join(output.split())
    assert "0 of 100 points, whole course: 0 of " in output
    assert "DDP training" in learning.types("list", "--all").out
