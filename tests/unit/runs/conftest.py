"""An empty workspace, and a learner whose runs end at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpucourse.context import Context
from gpucourse.errors import Interrupted, MissingError, UnreachableError
from gpucourse.runs import parameter_sweep, run_module
from gpucourse.runs.follow import FollowedRun
from gpucourse.runs.resolve import ResolvedRun
from gpucourse.runs.run import RunResult
from tests.learning import METRICS, PLOT, Learning
from tests.unit.labs.aws.fakes import context_in

CHECKS = """    checks:
      - {id: wet, title: It is wet, value: metrics.wet, equals: true, hint: Was it a river?}
      - {id: flows"""


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return context_in(tmp_path)[0]


@pytest.fixture
def lacking() -> set[str]:
    """Return the exercises with requirements that no node meets."""
    return set()


@pytest.fixture
def running(learning: Learning, lacking: set[str], monkeypatch: pytest.MonkeyPatch) -> Learning:
    """Return a learner whose runs end at once. Depth 13 fails, 14 is wrong, 15 is unreachable, and 16 is detached."""

    def run(_context: Any, resolved: ResolvedRun, **_options: Any) -> RunResult:
        order = resolved.request
        if order.exercise in lacking:
            raise MissingError("torch is not installed on node0")
        depth = int(order.settings.get("depth", 10))
        if depth == 15:
            raise UnreachableError("node0 does not answer")
        if depth == 16:
            raise Interrupted("let go", hint="gpucourse logs -f")
        springs = [{"litres": depth / 2, "busy_percent": 78}, {"litres": 1.0 * depth, "busy_percent": 96}]
        state = "failed" if depth == 13 else "succeeded"
        values = {**METRICS, "springs": springs, "wet": depth != 14}
        script = str(order.script) if order.script else None
        record = learning.record(order.exercise, values, parameters={"depth": depth}, state=state, own_script=script)
        return RunResult(record=record, followed_run=FollowedRun(record=record, verdict=None))

    manifest = learning.course / "modules/01-rivers/module.yaml"
    assert manifest.read_text().count(CHECKS) == 1
    manifest.write_text(manifest.read_text().replace(CHECKS, PLOT + CHECKS))
    # These tests type whole commands, which pass nothing in; a run itself would need a lab.
    monkeypatch.setattr(parameter_sweep, "run", run)
    monkeypatch.setattr(run_module, "run", run)
    return learning
