"""`report`: made from recorded runs and answers; missing items are named, and nothing is invented."""

from __future__ import annotations

import re
from html import unescape

import pytest

from gpucourse.workspace.files import write_record
from tests.learning import METRICS, Learning

PLAN = """\
format: 1
title: Rivers compared
enough: {gpus: 2, models: 2, models_of: "1.1"}
chapters:
  - id: flow
    title: Flow
    text: How much each river carries.
    exercise: "1.1"
    by: depth
    figures:
      - {id: most, value: max(metrics.springs.litres), title: most litres, digits: 2}
      - {id: power, value: metrics.power_w, title: power (W)}
    tables: [Springs]
    charts:
      - file: most
        title: Most litres
        kind: bar
        rows: metrics.subjects
        x: subject
        series: [{key: most, label: most}]
        x_title: river
        y_title: litres
    words: [{question: why, title: What I recommend}]
  - id: mouth
    title: Mouth
    text: Where it ends.
    exercise: "1.2"
"""


@pytest.fixture
def rivers(learning: Learning) -> Learning:
    learning.put("modules/report.yaml", PLAN)
    return learning


def read_report(rivers: Learning, ending: str) -> str:
    return unescape((rivers.workspace / "deliverables" / "final" / f"report.{ending}").read_bytes().decode("utf-8", "replace"))


def test_report_shows_the_newest_good_run_of_each_subject(rivers: Learning) -> None:
    rivers.record("1.1", METRICS | {"springs": [{"litres": 1.0, "busy_percent": 5}]})
    run = rivers.record("1.1", METRICS | {"springs": [{"litres": 3.25, "busy_percent": 5}]})
    second_run = rivers.record("1.1", METRICS, parameters={"depth": 20})
    failing_run = rivers.record("1.1", METRICS | {"wet": False, "springs": [{"litres": 99.0, "busy_percent": 5}]})
    failed_run = rivers.record("1.1", METRICS, state="failed", parameters={"depth": 30})
    document = rivers.types("report", "--json").document
    assert document["subjects"] == ["a CPU"]
    text = read_report(rivers, "html")
    for words in (
        run.id,
        second_run.id,
        "3.25",
        "a CPU, 20",
        "Simulated nodes (mode: local)",
        "columns without a value are left out: power (W)",
    ):
        assert words in text
    for words in (failing_run.id, failed_run.id, "99.00", "a CPU, 30"):
        assert words not in text


def test_report_names_what_is_missing_with_its_command_on_the_screen_alone(rivers: Learning) -> None:
    rivers.record()
    missing = " ".join(rivers.types("report", "--json").document["missing"])
    for words in (
        "2 GPUs; the runs here used none",
        "2 models",
        "gpucourse answer 1.1",
        "a good run of 1.2, Mouth. `gpucourse run 1.2`",
    ):
        assert words in missing
    result = rivers.types("report", "--format", "md")
    assert "Still missing" in result.out
    assert not re.search("missing|gpucourse (run|answer)|Mouth|What I recommend", read_report(rivers, "md"))


def test_report_has_an_abstract_and_the_machines_and_no_author_without_a_name(rivers: Learning) -> None:
    rivers.record("1.2")
    assert "models" not in " ".join(rivers.types("report", "--format", "md", "--json").document["missing"]), "1.1 has no run"
    record = rivers.record()
    write_record(rivers.folder(record) / "env.json", {"nodes": {"node0": {"memory_bytes": 25_280_000_000}}})
    rivers.types("report", "--format", "md")
    text = read_report(rivers, "md")
    assert text.splitlines()[2].startswith(f"{record.created[:4]}-")
    abstract = ("**Abstract.** This report describes a CPU.", "Main results: most litres: 2.50 on a CPU")
    for words in (*abstract, "## Machines", "23.5 GiB"):
        assert words in text


def test_report_has_the_learners_own_words(rivers: Learning) -> None:
    rivers.record()
    words = "Take the <Danube> & don't look back."
    rivers.types("answer", "1.1", "--set", f"why={words}", code=None)
    rivers.types("report")
    assert words in read_report(rivers, "html")
    assert "gpucourse answer 1.1" not in read_report(rivers, "html")


def test_report_leaves_out_a_damaged_run(rivers: Learning) -> None:
    rivers.record()
    record = rivers.record(parameters={"depth": 20})
    (rivers.folder(record) / "metrics.json").write_text('{"schema": 1, "dev')
    result = rivers.types("report")
    assert f"left out: run {record.id}" in result.err
    assert record.id not in read_report(rivers, "html")
