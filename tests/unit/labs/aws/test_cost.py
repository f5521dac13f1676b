from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from gpucourse.aws.money import Charge, Rate
from gpucourse.context import Context
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.cost import cost, preview_destroy
from gpucourse.model.deployment import Receipt
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.files import write_record
from tests.unit.labs.aws.fakes import deployment_of
from tests.unit.labs.aws.test_failure_report import WITHOUT_CREDENTIALS
from tests.unit.ui.examples import deployment, record


def test_cost_of_an_account_that_does_not_answer_is_that_of_the_ledger(context: Context) -> None:
    context = replace(context, environ=WITHOUT_CREDENTIALS)
    context.paths.settings.write_text("budget_usd: 10\n")
    began = ledger.now() - timedelta(hours=2)
    lab = deployment_of(hours=4)
    lab.created = began.isoformat()
    deployments.save(context.paths, lab)
    rate = Rate(usd_per_hour=Decimal(1), source="a list", date="2026-11-21")
    node = Charge(what="a node", kind="instance", rate=rate, item="i-1", stack=lab.uid, module="3", since=began)
    ledger.update(context.paths.ledger, lab.uid, [node], began)
    run = record(mode="aws", stack=lab.stack, started=began.isoformat(), ended=(began + timedelta(hours=1)).isoformat())
    runs.save(context.paths, run)
    result = cost(context)
    assert [f"{usd:.2f}" for usd in (result.usd, result.usd_to_end, result.left_usd or 0)] == ["2.00", "6.00", "8.00"]
    assert [(part.name, f"{part.usd:.2f}") for part in result.exercises] == [("3.1", "1.00")]
    assert "03-aws-t4: AWS did not report what it costs now" in result.warnings[0]


def test_cost_of_a_run_on_a_destroyed_lab_comes_from_its_receipt(context: Context) -> None:
    began, end_time = ledger.now() - timedelta(hours=3), ledger.now() - timedelta(hours=1)
    lab = deployment_of()
    rate = Rate(usd_per_hour=Decimal(2), source="a list", date="2026-11-21")
    node = Charge(what="a node", kind="instance", rate=rate, item="i-1", stack=lab.uid, module="9", since=began)
    ledger.update(context.paths.ledger, lab.uid, [node], began)
    ledger.update(context.paths.ledger, lab.uid, [], end_time)
    start, end = began.isoformat(), end_time.isoformat()
    receipt = Receipt(stack=lab.stack, uid=lab.uid, module="9", mode="aws", created=start, destroyed=end)
    write_record(context.paths.receipts / "one.json", receipt)
    half_hour = (began + timedelta(minutes=30)).isoformat()
    runs.save(context.paths, record(mode="aws", stack=lab.stack, started=start, ended=half_hour))
    [part] = cost(context, offline=True).exercises
    assert (part.name, part.hours, f"{part.usd:.2f}") == ("3.1", 0.5, "1.00")


def test_preview_destroy_lists_the_labs_that_cost_money_with_their_runs(context: Context) -> None:
    lab = deployment_of()
    runs.save(context.paths, record(mode="aws", stack=lab.stack, state="running"))
    assert preview_destroy(context, [deployment()]) == []
    [part] = preview_destroy(context, [deployment(), lab])
    assert (part.deployment, part.runs) == (lab, (record().id,))
