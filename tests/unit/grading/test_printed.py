"""Metrics beside logs: what ranks printed must be what metrics.json says, and both must fit the run."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gpucourse.grading.contradictions import find_contradictions
from gpucourse.grading.printed import LONGEST_LINE, RankLog, find_differences, says, split_lines
from gpucourse.model.check import LogEvidence
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import NodeExit, RunRecord

TABLE = """\
size   time ms  label
----  --------  --------
   8      0.12  dp 2 x 2
  16  1,234        -

done
"""
SIZES: list[dict[str, Any]] = [
    {"size": 8, "median_ms": 0.1249, "label": "dp 2 x 2"},
    {"size": 16, "median_ms": 1234.3, "label": None},
]
COLUMNS = {"size": "size", "median_ms": "time ms", "label": "label"}
LINE = "rank {rank}: loss {loss} in {} s"


def differences(metrics: dict[str, Any], *texts: str, **entry: Any) -> list[str]:
    logs = [RankLog(rank, split_lines(text)) for rank, text in enumerate(texts)]
    return list(find_differences([LogEvidence(**entry)], metrics, logs))


@pytest.mark.parametrize(
    ("text", "value", "same"),
    [
        ("0.12", 0.1249, True), ("0.12", 0.126, False), ("1,234", 1234.3, True), ("1,234", 1235.3, False),
        ("6.34e-08", 6.3432e-08, True), ("6.34e-08", 6.36e-08, False), ("16", 16, True), ("16", 17, False), ("-3", -3.4, True),
        ("-", None, True), ("0", None, False), ("true", True, True), ("1", True, False), ("nan", "nan", True),
        ("inf", "inf", True), ("a b", "a  b", True), ("7", "7", True), ("word", 7, False), ("1e9999999999", 1.0, False),
    ],
)  # fmt: skip
def test_says_compares_to_the_digits_that_were_printed(text: str, value: object, same: bool) -> None:
    assert says(text, value) is same


def test_find_differences_of_a_table() -> None:
    assert not differences({"rows": SIZES}, TABLE, rows="metrics.rows", table=COLUMNS)
    other = [SIZES[0], SIZES[1] | {"median_ms": 99.0}]
    assert differences({"rows": other}, TABLE, rows="metrics.rows", table=COLUMNS) == [
        "metrics.rows, row 2, is not what was printed: median_ms is 99.0, and the log says 1,234"
    ]
    assert differences({"rows": SIZES}, "no table", rows="metrics.rows", table=COLUMNS) == [
        "no rank printed a table with size, time ms, label"
    ]


def test_find_differences_of_a_line_of_each_rank() -> None:
    rows = [{"rank": 0, "loss": 1.5}, {"rank": 1, "loss": 2.5}]
    wanted: dict[str, Any] = {"rows": "metrics.rows", "line": LINE, "every_rank": True}
    logs = ["rank 0:   loss 1.50 in 3 s\n", "rank 1: loss 2.5 in 4 s\nbye\n"]
    assert not differences({"rows": rows}, *logs, **wanted)
    assert differences({"rows": rows}, *reversed(logs), **wanted) == [f'no rank printed "{LINE}"']
    assert "row 2" in differences({"rows": rows}, logs[0] + "rank 1: loss 2.5 in 4 s\n", "", **wanted)[0]
    assert differences({"rows": rows[:1]}, logs[0], "", **wanted) == [f'rank 1 did not print "{LINE}"']


@pytest.mark.parametrize(
    ("way", "value", "same"), [("mean", 2.0, True), ("mean", 2.1, False), ("sum", 4.0, True), ("max", 2.5, True)]
)
def test_find_differences_of_a_value_over_ranks(way: str, value: float, same: bool) -> None:
    logs = ["epoch 1 rank 0 loss 9\nepoch 1 rank 0 loss 1.50\n", "epoch 1 rank 1 loss 2.50\nepoch 2 rank 1 loss 7.00\n"]
    line = "epoch {epoch} rank {rank} loss {loss}"
    wanted: dict[str, Any] = {"rows": "metrics.epochs", "line": line, "over_ranks": {"loss": way}}
    assert (not differences({"epochs": [{"epoch": 1, "loss": value}]}, *logs, **wanted)) is same
    assert "rank 0 did not print it" in differences({"epochs": [{"epoch": 2, "loss": 7.0}]}, *logs, **wanted)[0]


def test_find_differences_of_a_table_without_rows() -> None:
    empty = "\n".join(TABLE.splitlines()[:2]) + "\n\ndone\n"
    assert not differences({"rows": []}, empty, rows="metrics.rows", table=COLUMNS)
    assert differences({"rows": []}, TABLE, rows="metrics.rows", table=COLUMNS) == ["metrics.rows holds no rows"]
    assert differences({"rows": SIZES}, empty, rows="metrics.rows", table=COLUMNS)


def test_find_differences_of_missing_metrics() -> None:
    bad: list[dict[str, Any]] = [{}, {"rows": None}, {"rows": []}, {"rows": 3}, {"rows": [3]}]
    for metrics in bad:
        assert differences(metrics, TABLE, rows="metrics.rows", table=COLUMNS)
        assert not differences(metrics, TABLE, rows="metrics.rows", table=COLUMNS, optional=True)
    assert not differences({"loss": None}, "", line="loss {loss}", optional=True)
    assert differences({"loss": 1.0}, "", line="loss {loss}", optional=True)
    assert not differences({"best": {"loss": 1.5}}, "loss 1.5", line="loss {best.loss}")
    assert differences({"best": 3}, "loss 1.5", line="loss {best.loss}")


def test_find_differences_of_a_hostile_log_is_bounded() -> None:
    text = ("rank 0: loss " * 20_000) + "\n" + "-" * 1000 + "\n" + "x" * 10 * LONGEST_LINE
    assert differences({"loss": 1.0}, text, line="rank {rank}: loss {loss} in {a} s {b} {c}")
    tables = "\n".join(TABLE.splitlines()[:2]) + "\n"
    many = [{"size": -1, "median_ms": -1, "label": "none"}] * 5_000
    assert "too many to compare" in differences({"rows": many}, tables * 5_000, rows="metrics.rows", table=COLUMNS)[0]


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"line": "x", "table": {"a": "b"}, "rows": "metrics.r"},
        {"line": "no key {}"},
        {"table": {"a": "b"}},
        {"line": "{x}", "rows": "plan.r"},
    ],
)
def test_log_evidence_has_one_form(entry: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LogEvidence(**entry)


EXERCISE = Exercise.model_validate(
    {
        "id": "7.1", "title": "t", "goal": "g", "minutes": 1, "script": "s.py", "launch": {"kind": "torchrun"}, "tasks": ["t"],
        "hints": ["h"], "logs": [{"line": "loss {loss}"}],
    }
)  # fmt: skip
METRICS: dict[str, Any] = {"loss": 1.5, "world_size": 2, "written": "2026-01-01T10:00:05+00:00"}


def contradictions(metrics: dict[str, Any], *texts: str, full_logs: tuple[str, ...] = ()) -> tuple[str, ...]:
    record = RunRecord(
        id="20260101-100000-otter", exercise="7.1", module="7", stack="07-local", mode="local", launcher="torchrun",
        state="succeeded", created="2026-01-01T10:00:00+00:00", ended="2026-01-01T10:00:10+00:00", nodes=["node0"],
        world_size=2, node_exits=[NodeExit(node="node0", code=0, seconds=9.0)], full_logs=list(full_logs),
    )  # fmt: skip
    return find_contradictions(EXERCISE, record, metrics, [RankLog(rank, split_lines(text)) for rank, text in enumerate(texts)])


def test_find_contradictions_of_what_fits_the_run_is_empty() -> None:
    timed = {"rows": [{"median_ms": 100.0, "samples": 90}]}
    assert contradictions(METRICS | timed, "loss 1.5", "here") == ()


@pytest.mark.parametrize(
    ("other", "logs", "said"),
    [
        ({"world_size": 3}, ("loss 1.5", "here"), "world_size is 3, and 2 ranks were started"),
        ({}, ("loss 1.5", ""), "rank 1 of 2 printed nothing"),
        ({}, ("loss 1.5",), "rank 1 of 2 printed nothing"),
        ({}, (), "it has no logs here"),
        ({"written": "2026-01-01T09:00:00+00:00"}, ("loss 1.5", "here"), "it was written at 2026-01-01T09:00:00+00:00"),
        ({"written": "yesterday"}, ("loss 1.5", "here"), "which is not a time"),
        ({"rows": [{"median_ms": 5e3, "samples": 20}]}, ("loss 1.5", "here"), "20 calls of 5000 ms take 25 s or more"),
        ({"loss": 0.1}, ("loss 1.5", "here"), "loss is 0.1, and the log says 1.5"),
    ],
)
def test_find_contradictions_names_what_cannot_be_true(other: dict[str, Any], logs: tuple[str, ...], said: str) -> None:
    assert any(said in sentence for sentence in contradictions(METRICS | other, *logs))


def test_find_contradictions_names_a_log_that_was_cut() -> None:
    assert contradictions(METRICS, "loss 1.5", "here", full_logs=("node0-rank0.log",)) == ()
    assert contradictions(METRICS, "begun", "here", full_logs=("node0-rank0.log",)) == (
        'only the beginning of node0-rank0.log was kept (log_limit in gpucourse.yaml): no rank printed "loss {loss}"',
    )
