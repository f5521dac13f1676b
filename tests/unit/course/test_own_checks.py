"""The checks of a learner's own script, read like those of a manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.course.own_checks import load_own_checks, read_own_checks
from gpucourse.errors import DamagedFile, ManifestError, UsageError

FILE = """\
checks:
  - {id: fast, title: It is fast, value: metrics.steps_per_s, at_least: 100, unit: steps/s, hint: Take a larger batch.}
  - {id: whole, title: All ranks took part, value: metrics.ranks, equals: plan.world_size, hint: Look at the logs.}
"""


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("check: []\n", ["check: is not a key here (did you mean checks?), line 1"]),
        (FILE.replace("at_least", "atleast"), ["checks.0: needs exactly one of", "line 2"]),
        (FILE.replace("value: metrics.ranks", "value: ranks"), ["checks.1.value", "line 3"]),
        (FILE.replace("id: whole", "id: fast"), ["the id fast appears twice"]),
    ],
)
def test_read_own_checks_of_a_bad_file_names_place_key_and_suggestion(tmp_path: Path, text: str, complaints: list[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError) as caught:
        read_own_checks(path)
    for complaint in complaints:
        assert complaint in caught.value.what
    assert str(path) in caught.value.what


def test_read_own_checks_of_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_own_checks(tmp_path / "none.yaml")


def test_load_own_checks_of_a_changed_record_is_damaged() -> None:
    check = {"id": "wet", "title": "t", "value": "metrics.wet", "equals": True, "hint": "h"}
    assert [item.id for item in load_own_checks([check], Path("run.json"))] == ["wet"]
    with pytest.raises(DamagedFile, match=r"run\.json is damaged"):
        load_own_checks([{**check, "value": 1}], Path("run.json"))
