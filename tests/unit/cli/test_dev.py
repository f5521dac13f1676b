"""The command `dev`: the complaints about a course, and the arguments that it refuses."""

from __future__ import annotations

import pytest

from gpucourse.course.schema import SCHEMAS
from tests.learning import FOLDER, MANIFEST, RUBRIC, Learning


@pytest.fixture
def learning(learning: Learning) -> Learning:
    """Return an author whose rubric awards a delivered script no more points than the limit."""
    rubric = RUBRIC.split('  - module: "9"')[0].replace("evidence: [checks]", "evidence: {checks: 25, yours: 25, answers: 50}")
    learning.put("modules/rubric.yaml", rubric)
    part = "    yours: [{id: wet, title: Wet, file: source.py, write: Make it wet., judge: false, checks: [wet]}]\n"
    manifest = MANIFEST.replace('  - id: "1.2"', f'{part}  - id: "1.2"') + part
    learning.put(f"modules/{FOLDER}/module.yaml", "# yaml-language-server: $schema=../module.schema.json\n" + manifest)
    return learning


def test_dev_check_of_a_right_course_has_no_complaints(learning: Learning) -> None:
    assert "1 module, no complaints" in learning.types("dev", "check").err
    document = learning.types("dev", "check", str(learning.course), "--json").document
    assert (document["complaints"], document["modules"]) == ([], ["1"])


def test_dev_check_names_the_place_of_every_complaint(learning: Learning) -> None:
    manifest = learning.course / "modules/01-rivers/module.yaml"
    manifest.write_text(manifest.read_text().replace("metrics.power_w, unit: W, tol", "metrics.power_kw, unit: W, tol"))
    learning.put("exercises/01-rivers/old.py", "")
    result = learning.types("dev", "check", code=2)
    assert "questions.power: no script of 1.1 writes power_kw" in result.err
    assert "exercises/01-rivers/old.py: no exercise uses it" in result.err
    assert "docs/authoring.md" in result.err
    assert len(learning.types("dev", "check", "--json", code=2).document["complaints"]) == 2


def test_dev_schema_replaces_a_stale_schema(learning: Learning) -> None:
    stale = learning.course / "modules/quiz.schema.json"
    stale.write_text("{}")
    message = " ".join(learning.types("dev", "check", code=2).err.split())
    assert (
        f"modules/quiz.schema.json: is the schema of another gpucourse; type: gpucourse dev schema {learning.course}" in message
    )
    assert learning.types("dev", "schema", "--json").document["files"] == [f"modules/{name}" for name in SCHEMAS]
    learning.types("dev", "check")


def test_dev_with_wrong_arguments_names_them(learning: Learning) -> None:
    for words, code, message in (
        (["dev", "check", "/nowhere"], 2, "/nowhere is not a folder"),
        (["dev", "check", "/nowhere"], 2, "modules/ and exercises/: gpucourse dev check DIR"),
        (["dev", "check", "/"], 2, "/ has no folder modules/"),
        (["dev", "check", "--module", "1"], 2, "--module is only for --run"),
        (["dev", "cheque"], 2, "'cheque'"),
        (["dev", "new", "x", "--run"], 2, "--run is only for dev check"),
        (["dev", "check", "--run", "--module", "9"], 2, "there is no module '9'"),
    ):
        assert message in learning.types(*words, code=code).err
