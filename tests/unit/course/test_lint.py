"""The author's lint: no complaints about a correct course, and one line for each disagreement between its files."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.course.lint import find_telling_options, lint
from gpucourse.model.questions import Prediction, Question
from gpucourse.outside.yaml_reader import read_document
from gpucourse.workspace.files import write_record
from tests.course import CATALOG


@pytest.mark.slow
def test_lint_of_this_course_has_no_complaints() -> None:
    assert lint(CATALOG) == []


def test_lint_names_a_record_of_a_gpu_that_cannot_be_used(clean_course: Any) -> None:
    """A made-up one, of a GPU that does not exist."""
    record = {"format": 2, "gpu": "Imaginary GPU", "date": "2026-01-01", "versions": {}, "exercises": {}}
    write_record(clean_course.folders.exercises / "recorded" / "imaginary-gpu.json", record)
    assert lint(clean_course.load()) == []
    write_record(clean_course.folders.exercises / "recorded" / "another-gpu.json", record)
    (line,) = lint(clean_course.load())
    assert line.startswith("exercises/recorded/another-gpu.json: cannot be used: it is about Imaginary GPU")


SCRIPT = "exercises/07-rivers/source.py"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"--depth", type=int', '"--deep", type=int', f"{SCRIPT}: has no flag --depth, a parameter of 7.1"),
        ('"--depth", type=int', '"--deep", type=int', f"{SCRIPT}: the flag --deep is not a parameter of 7.1"),
        ("type=int", "type=float", f"{SCRIPT}: --depth is of type float, but of type int in the manifest"),
        ("default=100", "default=99", f"{SCRIPT}: --depth has the default 99, but 100 in the manifest"),
        ('"""Find the source."""', "", f"{SCRIPT}: has no docstring, which is the first thing that a learner reads"),
        ("import argparse", "import argparse (", f"{SCRIPT}: is not Python: invalid syntax"),
    ],
)
def test_lint_names_where_script_and_manifest_differ(clean_course: Any, old: str, new: str, message: str) -> None:
    path = clean_course.root / SCRIPT
    path.write_text(path.read_text().replace(old, new))
    assert any(line.startswith(message) for line in lint(clean_course.load())), lint(clean_course.load())


def test_lint_compares_the_choices_of_script_and_manifest(clean_course: Any) -> None:
    clean_course.change(
        "- {name: depth", "- {name: kind, type: str, default: ring, choices: [ring, tree], help: which}\n      - {name: depth"
    )
    path = clean_course.root / SCRIPT
    flag = 'parser.add_argument("--kind", type=str, default="ring", choices=["ring", "tree"])\n'
    path.write_text(path.read_text().replace("parser.add_argument", flag + "parser.add_argument", 1))
    assert lint(clean_course.load()) == []
    path.write_text(path.read_text().replace('"tree"]', '"line"]'))
    assert lint(clean_course.load()) == [f"{SCRIPT}: --kind has the choices ring, line, but ring, tree in the manifest"]


SPLIT = "modules/07-rivers/module.yaml: exercises.0.hints: {!r} has no quotes in an inline list, "
CURE = "where every comma begins a new item: put each text in quotes, or write one item per line, line {}"


@pytest.mark.parametrize(
    ("hints", "names"),
    [
        ("[Look up, nothing, and listen]", "Look up"),
        ("[Listen, 000 GB, 9 GB]", "000 GB"),
        ("[Yes, because it flows., Listen.]", "because it flows."),
    ],
)
def test_lint_names_a_sentence_that_its_commas_may_have_split(clean_course: Any, hints: str, names: str) -> None:
    clean_course.change("[Look up., Look down., Listen.]", hints)
    line = 1 + clean_course.manifest.read_text().split("hints:")[0].count("\n")
    assert lint(clean_course.load()) == [SPLIT.format(names) + CURE.format(line)]
    assert clean_course.load().errors == (), "an author is told; a learner's commands go on"


@pytest.mark.parametrize(
    "hints",
    [
        '["Look up, or down", "nothing, and listen", Listen]',
        "[Look up., Does it flow?, Listen!]",
        "[242 TFLOP/s, 0.5 ms, 9 GB]",
        "[100 up, 0 down, '0']",
        "['it flows', \"it's deep\", wet]",
        "\n      - Look up, or down\n      - nothing, and listen\n      - Listen",
    ],
)
def test_lint_of_a_list_that_no_comma_can_split_has_no_complaints(clean_course: Any, hints: str) -> None:
    clean_course.change("[Look up., Look down., Listen.]", hints)
    assert lint(clean_course.load()) == []


@pytest.mark.parametrize(("words", "names"), [("[1,000, 2,000]", ["000"]), ("[1, 2,048.5]", ["048.5"]), ("[1, 0, 500]", [])])
def test_lint_names_a_number_that_its_comma_has_split(words: str, names: list[str]) -> None:
    reasons = [complaint.reason for complaint in read_document(f"values: {words}\n".encode()).unquoted]
    assert [reason.split("'")[1] for reason in reasons] == names


def test_lint_names_what_the_report_reads_and_no_script_writes(clean_course: Any) -> None:
    chart = "file: c, title: C, kind: bar, rows: metrics.subjects, x: subject, x_title: x, y_title: y"
    clean_course.put(
        "modules/report.yaml",
        "format: 1\ntitle: Rivers\nchapters:\n  - id: flow\n    title: Flow\n    text: t\n    exercise: '7.1'\n"
        "    figures: [{id: most, value: metrics.mostly, title: most}]\n"
        f"    charts: [{{{chart}, series: [{{key: moist, label: m}}]}}]\n",
    )
    assert lint(clean_course.load()) == [
        "modules/report.yaml: chapters.flow: 7.1.figures.most: no script of 7.1 writes mostly, which metrics.mostly needs",
        "modules/report.yaml: chapters.flow: charts: metrics.subjects.moist: no figure of the chapter has this id",
    ]


def test_lint_names_files_that_no_exercise_uses(clean_course: Any) -> None:
    clean_course.put("exercises/07-rivers/old.py", "")
    clean_course.put("exercises/99-gone/x.py", "")
    clean_course.put("exercises/07-rivers/solutions/source.py", "")
    clean_course.put("exercises/07-rivers/__pycache__/source.pyc", "")
    assert lint(clean_course.load()) == [
        "exercises/07-rivers/old.py: no exercise uses it",
        "exercises/99-gone/x.py: is in a folder that belongs to no module",
    ]


@pytest.mark.parametrize(
    ("hints", "complaint"),
    [
        ("Look up.", "modules/07-rivers/module.yaml: 7.1.hints: has 1, but needs at least 3"),
        (
            "Look up., Look down., {part: flow, ways: [wet, dry], text: Listen.}",
            "exercises/07-rivers/my_flood.py: a hint names neither a wrong way of the judge nor a check: wet",
        ),
    ],
)
def test_lint_names_what_is_wrong_with_hints(clean_course: Any, hints: str, complaint: str) -> None:
    add_part(clean_course)
    clean_course.change("[Look up., Look down., Listen.]", f"[{hints}]")
    assert complaint in lint(clean_course.load())


def test_lint_asks_for_one_main_table(clean_course: Any) -> None:
    first = "columns: [{key: litres, title: litres, digits: 1}]"
    second = f"{first}\n      - title: Springs by day\n        rows: metrics.springs\n        {first}"
    clean_course.change(first, second)
    (line,) = lint(clean_course.load())
    assert line.startswith("modules/07-rivers/module.yaml: 7.1.tables: 2 tables, but none has main: true")
    clean_course.change("title: Springs\n", "title: Springs\n        main: true\n")
    assert lint(clean_course.load()) == []


def test_lint_asks_for_no_flag_of_the_number_of_processes(clean_course: Any) -> None:
    count = "- {name: nproc, type: int, default: 2, min: 1, max: 8, help: how many processes}\n      - {name: depth"
    clean_course.change("- {name: depth", count)
    assert lint(clean_course.load()) == ["exercises/07-rivers/source.py: has no flag --nproc, a parameter of 7.1"]
    clean_course.change("kind: torchrun, nodes: 2", "kind: torchrun, nodes: 2, procs_per_node: nproc")
    assert lint(clean_course.load()) == []


def test_lint_of_a_broken_manifest_does_not_call_its_files_unused(clean_course: Any) -> None:
    clean_course.change("kind: torchrun", "kind: torchurn")
    complaints = lint(clean_course.load())
    assert len(complaints) == 1
    assert "did you mean torchrun?" in complaints[0]


DELIVERED = "file: source.py, write: Make it flow., judge: false, checks: [wet]"
WAYS = """
WAYS = {
    "dry": Way("it is dry", ("wet", "dry")),
    "late": Way("it is late", change=("soon", "late")),
    "low": Way("low", ("up", "down")),
}
"""


JUDGE = """
def judge(part):
    for name in ("dry", "late", "low"):
        raise part.wrong(name)
"""


def add_part(course: Any) -> None:
    course.change(DELIVERED, "file: my_flood.py, write: Write it., torch: false")
    course.put("exercises/07-rivers/my_flood.py", "")
    course.put("exercises/07-rivers/judges/my_flood.py", WAYS + JUDGE)
    course.put("exercises/07-rivers/solutions/my_flood.py", "# wet soon up")
    course.put("exercises/07-rivers/solutions/other/my_flood.py", "")


def test_lint_of_a_whole_part_has_no_complaints(clean_course: Any) -> None:
    add_part(clean_course)
    assert lint(clean_course.load()) == []


@pytest.mark.parametrize("name", ["judges/my_flood.py", "solutions/my_flood.py", "solutions/other/my_flood.py"])
def test_lint_names_a_missing_file_of_a_part(clean_course: Any, name: str) -> None:
    add_part(clean_course)
    (clean_course.load().folders.exercises / "07-rivers" / name).unlink()
    assert f"exercises/07-rivers/my_flood.py: {name} is missing" in lint(clean_course.load())


def make_choice(name: str, key: str, *options: str) -> Question:
    return Question.model_validate({"id": name, "kind": "choice", "text": "t", "options": options, "key": key})


def test_find_telling_options() -> None:
    long = [make_choice(f"q{number}", key, "no", "it is this one, because") for number, key in enumerate("bbb")]
    even_choices = [make_choice(f"e{number}", key, "one way", "two ways") for number, key in enumerate("aabb")]
    assert list(find_telling_options(even_choices)) == []
    assert list(find_telling_options(long[:1])) == [], "one of few may be"
    assert list(find_telling_options(long)) == ["the right option is the longest in 3 of 3 choices: q0, q1, q2"]
    assert list(find_telling_options([*even_choices, make_choice("x", "a", "1", "2"), make_choice("y", "a", "1", "2")])) == [
        "a is right in 4 of 6 choices: reorder the options of some"
    ]
    keys = {"id": "way", "text": "t", "value": "metrics.v", "options": ["more", "it is less, because"], "ranges": {"b": [1, 2]}}
    direction = Prediction.model_validate(keys)
    assert list(find_telling_options([direction] * 2)) == ["the right option is the longest in 2 of 2 choices: way, way"]


def test_lint_names_a_mutation_whose_text_is_not_in_the_file(clean_course: Any) -> None:
    question = "{id: dry, kind: mutation, text: Dry it., check: wet, edit: source.py, was: no such text, becomes: x}"
    clean_course.change("    questions:\n", f"    questions:\n      - {question}\n")
    place = "modules/07-rivers/module.yaml: 7.1.questions.dry:"
    assert f"{place} the text that it changes occurs 0 times in source.py, but must occur once" in lint(clean_course.load())


def test_lint_names_an_exercise_without_a_part(clean_course: Any) -> None:
    clean_course.change("    yours: [{id: flow, title: Flow, " + DELIVERED + "}]\n", "")
    assert lint(clean_course.load()) == ["modules/07-rivers/module.yaml: 7.1.yours: no part for the learner to write"]


def test_lint_names_an_exercise_without_a_prediction(clean_course: Any) -> None:
    clean_course.change("    no_predict: Nobody knows a river before.\n", "")
    assert [line for line in lint(clean_course.load()) if "7.1: needs predict, or no_predict" in line]
