from __future__ import annotations

from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import GivenPrediction
from gpucourse.runs.resolve import RunRequest, resolve
from gpucourse.runs.run import new_record
from gpucourse.workspace import runs
from tests.learning import Learning, deploy


def test_new_record_holds_the_prediction_before_the_run_starts(learning: Learning) -> None:
    lab, context = deploy(learning), learning.context
    run_id = runs.new_run(context.paths, "1.1")
    plan = LaunchPlan(
        run_id=run_id, exercise="1.1", launcher="python", mode="local", script="source.py", parameters={}, commands=(),
        uploads=(), master_address="", master_port=0, timeout_s=60.0, collective_timeout_s=60.0,
    )  # fmt: skip
    prediction = GivenPrediction(id="faster", answer="1.8")
    record = new_record(context, resolve(context, RunRequest(exercise="1.1", prediction=prediction)), lab, plan)
    assert record.state == "planned"
    assert runs.reread(context.paths, record).prediction == prediction
