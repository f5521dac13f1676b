"""`cost`: show the cost of the course so far by module and exercise, the further cost of the labs until they end, and the
remaining budget.

The figures come from the ledger, which is first updated from the account. To show the amount that AWS has actually billed, a
separate request is needed, which costs a cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial

from gpucourse.aws.money import Bill, BilledCost, Span, query_billed_cost, usd_over
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.account import check_account
from gpucourse.labs.results import StackCost
from gpucourse.model.deployment import AwsDeployment, Deployment, Receipt
from gpucourse.parallel import try_all
from gpucourse.runs.slurm_hours import ClusterHours, list_hours
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.files import read_record
from gpucourse.workspace.paths import WorkspacePaths

WITHIN_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Running:
    """One stack that costs money now. Amounts are in USD.

    `usd_to_end`: the cost from now until its deadline, or None if no deadline is recorded.
    """

    stack: str
    module: str
    usd_per_hour: Decimal
    usd: Decimal
    expires: str = ""
    usd_to_end: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class CostPart:
    """A module, an exercise or a kind of resource, with its cost in USD. `hours`: how long it was used, if known."""

    name: str
    usd: Decimal
    hours: float | None = None
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """All costs and the budget, in USD.

    `usd_to_end`: the cost so far, plus the cost of the running labs until their deadlines.
    `left_usd`: the remaining budget; None without a budget.
    `sources`: where and when the prices were read.
    `clusters`: the core hours and GPU hours of runs on Slurm clusters; `max_gpu_hours`: the limit in the settings.
    """

    usd: Decimal
    usd_per_hour: Decimal
    usd_to_end: Decimal
    budget_usd: Decimal | None
    left_usd: Decimal | None
    running: list[Running]
    modules: list[CostPart]
    exercises: list[CostPart]
    kinds: list[CostPart]
    sources: list[str]
    warnings: list[str] = field(default_factory=list)
    billed: BilledCost | None = None
    clusters: list[ClusterHours] = field(default_factory=list)
    max_gpu_hours: float | None = None


def cost(context: Context, *, ask_aws: bool = False, offline: bool = False) -> Cost:
    """Return the known costs. First query the account for existing resources, unless `offline`.

    If the account does not answer, only the ledger is used. With `ask_aws`, also query Cost Explorer, which costs one cent per
    request. Raises the errors of that call.
    """
    labs = {item.uid: item for item in deployments.every(context.paths) if isinstance(item, AwsDeployment)}
    warnings = [] if offline else _settle_ledgers(context, labs)
    bill, at = ledger.read(context.paths.ledger), ledger.now()
    if bill.damaged:
        warnings.append(f"{bill.damaged} lines of the ledger cannot be read and are not counted")
    running = _list_running(bill, labs, at)
    exercises: dict[str, CostPart] = {}
    for exercise, stack, start, end in _list_run_times(context.paths, bill, at):
        earlier = exercises.get(exercise, CostPart(name=exercise, usd=Decimal(0), hours=0.0))
        usd = earlier.usd + bill.select(stack).total(at, start, end)
        exercises[exercise] = replace(earlier, usd=usd, hours=(earlier.hours or 0.0) + (end - start).total_seconds() / 3600)
    titles = {module.id: module.title for module in context.catalog.modules} if bill.spans else {}
    usd, budget = ledger.cents(bill.total(at)), context.settings.budget_usd
    return Cost(
        usd=usd,
        usd_per_hour=ledger.cents(bill.per_hour()),
        usd_to_end=ledger.cents(bill.total(at) + sum((item.usd_to_end or Decimal(0) for item in running), Decimal(0))),
        budget_usd=budget,
        left_usd=None if budget is None else budget - usd,
        running=running,
        modules=[replace(part, title=titles.get(part.name, "")) for part in _make_parts(bill.sum_by("module", at))],
        exercises=[
            replace(part, usd=ledger.cents(part.usd), hours=round(part.hours or 0.0, 3))
            for _, part in sorted(exercises.items())
        ],
        kinds=_make_parts(bill.sum_by("kind", at)),
        sources=sorted({span.charge.rate.origin for span in bill.spans}),
        warnings=warnings,
        billed=_query_billed_cost(context, bill) if ask_aws else None,
        clusters=list_hours(context.paths),
        max_gpu_hours=context.settings.max_gpu_hours,
    )


def _settle_ledgers(context: Context, labs: dict[str, AwsDeployment]) -> list[str]:
    """Update the ledger from the account for every stack, even if its record is lost; return warnings."""
    bill = ledger.read(context.paths.ledger)
    looks = {}
    for uid in sorted({span.charge.stack for span in bill.open()} | set(labs)):
        region = labs[uid].cloud.region if uid in labs else _guess_region(bill.select(uid).open())
        if region:
            looks[uid] = partial(_settle, context.paths, Account(region, context.environ), uid, labs.get(uid))
    answers = dict(zip(looks, try_all(list(looks.values()), limit=len(looks), within_s=WITHIN_S), strict=True))
    names = {uid: labs[uid].stack if uid in labs else uid for uid in answers}
    return [
        f"{names[uid]}: AWS did not report what it costs now, so the last recorded figure is shown: {answer.what}"
        for uid, answer in answers.items()
        if isinstance(answer, GpucourseError)
    ]


def _settle(paths: WorkspacePaths, account: Account, uid: str, lab: AwsDeployment | None) -> None:
    if lab is not None:
        check_account(account, lab)
    ledger.settle(paths, account, uid, expires=lab.cloud.expires if lab else "")


def _guess_region(spans: Sequence[Span]) -> str:
    """Return the region of a stack whose record is lost: the name of a recorded zone, without the last letter."""
    return next((span.charge.zone[:-1] for span in spans if span.charge.zone), "")


def _list_running(bill: Bill, labs: dict[str, AwsDeployment], at: datetime) -> list[Running]:
    running = []
    for uid in sorted({span.charge.stack for span in bill.open()}):
        lab_bill = bill.select(uid)
        lab = labs.get(uid)
        remaining = max(timedelta(), datetime.fromisoformat(lab.cloud.expires) - at) if lab else None
        running.append(
            Running(
                stack=lab.stack if lab else uid,
                module=lab_bill.spans[0].charge.module,
                usd_per_hour=ledger.cents(lab_bill.per_hour()),
                usd=ledger.cents(lab_bill.total(at)),
                expires=lab.cloud.expires if lab else "",
                usd_to_end=None if remaining is None else ledger.cents(usd_over(lab_bill.per_hour(), remaining)),
            )
        )
    return running


def _list_run_times(paths: WorkspacePaths, bill: Bill, at: datetime) -> list[tuple[str, str, datetime, datetime]]:
    """Return the exercise, the stack, the start and the end of each run.

    A run records the name of its stack, but the ledger records the stack's id. Deployments and receipts connect the two. If
    they are missing, the module and the time of the run are compared with the ledger.
    """
    ids = _list_lives(paths)
    run_times = []
    for record in runs.readable(paths)[0]:
        if record.mode != "aws" or not record.started:
            continue
        start = datetime.fromisoformat(record.started)
        end = datetime.fromisoformat(record.ended) if record.ended else None
        if record.has_ended and end is None:
            continue
        uid = next((uid for name, uid, since, until in ids if name == record.stack and since <= start < until), "")
        uid = uid or next((span.charge.stack for span in bill.spans if _covers(span, record.module, start)), "")
        if uid:
            run_times.append((record.exercise, uid, start, end or at))
    return run_times


def _list_lives(paths: WorkspacePaths) -> list[tuple[str, str, datetime, datetime]]:
    """Return the name and the id of every stack, and when it was created and destroyed."""
    end = ledger.now() + timedelta(days=1)
    lives = [
        (deployment.stack, deployment.uid, datetime.fromisoformat(deployment.created), end)
        for deployment in deployments.every(paths)
    ]
    for file in sorted(paths.receipts.glob("*.json")) if paths.receipts.is_dir() else ():
        receipt = read_record(file, Receipt)
        if receipt is not None and receipt.mode == "aws" and receipt.created:
            since, until = datetime.fromisoformat(receipt.created), datetime.fromisoformat(receipt.destroyed)
            lives.append((receipt.stack, receipt.uid, since, until))
    return lives


def _covers(span: Span, module: str, moment: datetime) -> bool:
    return span.charge.module == module and span.started <= moment < (span.ended or moment + timedelta(days=1))


def _make_parts(totals: dict[str, Decimal]) -> list[CostPart]:
    return [CostPart(name=name, usd=ledger.cents(usd)) for name, usd in sorted(totals.items())]


def _query_billed_cost(context: Context, bill: Bill) -> BilledCost:
    last_day = ledger.now().date()
    first = min((span.started.date() for span in bill.spans), default=date(last_day.year, last_day.month, 1))
    return query_billed_cost(Account(context.settings.region, context.environ), first, last_day)


def preview_destroy(context: Context, stacks: Sequence[Deployment]) -> list[StackCost]:
    """Return the costs of these labs. Labs that cost nothing are left out."""
    cloud_labs = [deployment for deployment in stacks if isinstance(deployment, AwsDeployment)]
    if not cloud_labs:
        return []
    active = runs.list_unfinished(context.paths)
    return [
        StackCost(
            deployment=deployment,
            per_hour=ledger.per_hour(context.paths, deployment),
            spent=ledger.sum_costs(context.paths, deployment.uid),
            runs=tuple(record.id for record in active if record.stack == deployment.stack),
        )
        for deployment in cloud_labs
    ]
