"""`dev check`: what an author is told, and how."""

from __future__ import annotations

import pytest

from gpucourse.course.locate import find_course
from gpucourse.course.references import RUN_KEYS
from gpucourse.course.schema import SCHEMAS
from gpucourse.runs.results import material
from tests.learning import FOLDER, MANIFEST, RUBRIC, Learning


@pytest.fixture
def learning(learning: Learning) -> Learning:
    """An author whose rubric gives a delivered script no more than it may."""
    rubric = RUBRIC.split('  - module: "9"')[0].replace("evidence: [checks]", "evidence: {checks: 25, yours: 25, answers: 50}")
    learning.put("modules/rubric.yaml", rubric)
    part = "    yours: [{id: wet, title: Wet, file: source.py, write: Make it wet., judge: false, checks: [wet]}]\n"
    both = MANIFEST.replace('  - id: "1.2"', f'{part}  - id: "1.2"') + part
    learning.put(f"modules/{FOLDER}/module.yaml", "# yaml-language-server: $schema=../module.schema.json\n" + both)
    return learning


def test_a_course_with_nothing_to_complain_about(learning: Learning) -> None:
    assert "1 module, no complaints" in learning.types("dev", "check").err
    document = learning.types("dev", "check", str(learning.course), "--json").document
    assert (document["complaints"], document["modules"]) == ([], ["1"])


def test_a_script_may_not_earn_the_points_as_it_was_delivered(learning: Learning) -> None:
    learning.put("modules/rubric.yaml", RUBRIC)
    said = " ".join(learning.types("dev", "check", code=2).err.split())
    assert "rubric.yaml: parts.1: checks and deliverables of 1.1 give 60% of its points, and may give 30%" in said


def test_every_complaint_with_its_place(learning: Learning) -> None:
    manifest = learning.course / "modules/01-rivers/module.yaml"
    manifest.write_text(manifest.read_text().replace("metrics.power_w, unit: W, tol", "metrics.power_kw, unit: W, tol"))
    learning.put("exercises/01-rivers/old.py", "")
    said = learning.types("dev", "check", code=2)
    assert "questions.power: no script of 1.1 writes power_kw" in said.err
    assert "exercises/01-rivers/old.py: no exercise uses it" in said.err
    assert "docs/authoring.md" in said.err
    assert len(learning.types("dev", "check", "--json", code=2).document["complaints"]) == 2


def test_wrong_words(learning: Learning) -> None:
    for words, code, said in (
        (["dev", "check", "/nowhere"], 3, "DIR is /nowhere, which is no folder"),
        (["dev", "check", "/nowhere"], 3, "modules/ and exercises/: gpucourse dev check DIR"),
        (["dev", "check", "/"], 3, "DIR is /, where there is no folder modules/"),
        (["dev", "check", "--module", "1"], 2, "--module goes with --run"),
        (["dev", "cheque"], 2, "'cheque'"),
        (["dev", "new", "x", "--run"], 2, "--run goes with dev check"),
        (["dev", "check", "--run", "--module", "9"], 2, "there is no module '9'"),
    ):
        assert said in learning.types(*words, code=code).err


def test_a_new_course_is_right_from_the_start(learning: Learning) -> None:
    folder = learning.root / "my course"
    document = learning.types("dev", "new", str(folder), "--json").document
    assert document["folder"] == str(folder)
    assert document["files"] == sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert {f"modules/{name}" for name in SCHEMAS} < {*document["files"]}
    shared = find_course({}).exercises / "shared"
    assert (folder / "exercises/shared/ranks.py").read_bytes() == (shared / "ranks.py").read_bytes()
    assert "1 module, no complaints" in learning.types("dev", "check", str(folder)).err


def test_a_new_course_says_what_comes_next(learning: Learning) -> None:
    folder = learning.root / "my course"
    folder.mkdir()
    said = learning.types("dev", "new", str(folder)).err
    assert f"{folder}: a course of one module with one exercise" in " ".join(said.split())
    assert f"gpucourse dev check '{folder}' --run" in " ".join(said.split())


def test_a_new_course_wants_an_empty_folder(learning: Learning) -> None:
    before = sorted(learning.course.rglob("*"))
    said = " ".join(learning.types("dev", "new", str(learning.course), code=2).err.split())
    assert f"{learning.course} holds files already, and a new course wants an empty folder" in said
    assert sorted(learning.course.rglob("*")) == before
    assert "is a file" in learning.types("dev", "new", str(learning.course / "modules/rubric.yaml"), code=2).err
    assert "dev new needs a folder" in learning.types("dev", "new", code=2).err


def test_the_schemas_are_written_for_an_editor(learning: Learning) -> None:
    stale = learning.course / "modules/quiz.schema.json"
    stale.write_text("{}")
    said = " ".join(learning.types("dev", "check", code=2).err.split())
    assert f"modules/quiz.schema.json: is the schema of another gpucourse; type: gpucourse dev schema {learning.course}" in said
    assert learning.types("dev", "schema", "--json").document["files"] == [f"modules/{name}" for name in SCHEMAS]
    learning.types("dev", "check")


def test_the_keys_of_a_run_are_those_that_checks_find(learning: Learning) -> None:
    assert set(material(learning.context, learning.record())["run"]) == RUN_KEYS
