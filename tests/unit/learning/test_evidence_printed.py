"""Numbers that no rank printed give no points."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.model.record import RunRecord
from gpucourse.runs.finish import seal
from gpucourse.workspace import runs
from tests.learning import FOLDER, MANIFEST, Learning

CHECKS = "    checks:\n      - {id: wet, title: It is wet, value: metrics.wet, equals: true, hint: Was it a river?}\n"
CHECKS += "      - {id: flows"
LOGS = '    logs: [{line: "litres {litres}, busy {busy_percent} %", rows: metrics.springs}]\n'
PRINTED = "litres 1.5, busy 78 %\nlitres 2.5, busy 96 %\n"


def put_logs(learning: Learning) -> None:
    """Let the first exercise of the course print its springs."""
    assert MANIFEST.count(CHECKS) == 1
    learning.put(f"modules/{FOLDER}/module.yaml", MANIFEST.replace(CHECKS, LOGS + CHECKS))


@pytest.fixture
def printing(learning: Learning) -> Learning:
    """A learner of a course whose first exercise prints its springs."""
    put_logs(learning)
    return learning


def record_with_log(learning: Learning, log: str, **other: Any) -> RunRecord:
    """A good run whose rank printed this."""
    record = learning.record(**other)
    learning.folder(record).joinpath("logs/node0-rank0.log").write_text(log)
    seal(runs.files_of(learning.open_context().paths, record), "local")
    return record


def test_grade_of_a_run_that_printed_its_numbers(printing: Learning) -> None:
    record_with_log(printing, PRINTED)
    printing.types("check", "1.1")
    assert printing.read_points() == {"completed": 5, "deliverables": 5, "understanding": 0}
    printing.types("answer", "1.1", "--set", "busy=80")


def test_grade_of_numbers_that_no_rank_printed_gives_no_points(printing: Learning) -> None:
    record_with_log(printing, PRINTED.replace("2.5", "3.5"))
    why = "metrics.springs, row 2, is not what was printed: litres is 2.5, and the log says 3.5"
    said = printing.types("check", "1.1", code=5)
    assert why in " ".join(said.out.split())
    refused = printing.types("answer", "1.1", "--set", "busy=80", code=None)
    assert "are not what its ranks printed" in " ".join((refused.out + refused.err).split())
    assert printing.read_points() == {"completed": 0, "deliverables": 0, "understanding": 0}
    path = printing.hand_in()
    printing.leave()
    said = printing.types("grade", "--open", str(path))
    assert f"1.1: not what the ranks printed: {why}" in " ".join(said.out.split())
    assert printing.read_points("--open", str(path)) == {"completed": 0, "deliverables": 0, "understanding": 0}


def test_grade_of_a_run_without_a_log_gives_no_points(printing: Learning) -> None:
    record_with_log(printing, "")
    assert printing.read_points()["completed"] == 0
