"""The documents of labs: `deploy`, `status`, `destroy`, `doctor`, `cost`, `leaks`, and the commands that change a lab on
AWS."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal, NotRequired, TypedDict

from gpucourse.aws.money import BilledCost
from gpucourse.cli.documents.course import ErrorDocument
from gpucourse.labs.results import ModulePrice
from gpucourse.model.cloud import CloudResource, Finding, Quota, QuotaRequest
from gpucourse.model.deployment import Cloud, Leftover, NodeHealth


class NodeDocument(TypedDict):
    """One machine and how SSH reaches it."""

    name: str
    role: str
    address: str
    port: int
    private_address: str
    user: str
    gpus: int
    instance_type: str
    python: str
    mode: str
    host_key: str


class LabDocument(TypedDict):
    """One lab as recorded. `cloud` is null for labs that are not on AWS."""

    stack: str
    uid: str
    module: str
    target: str
    template: str
    phase: str
    mode: str
    gpu: str
    link: str
    created: str
    expires: str | None
    nodes_wanted: int
    nodes: list[NodeDocument]
    cloud: Cloud | None
    error: str | None


class BuiltLab(TypedDict):
    """What `deploy` did, or would do, for one lab. `changes` are pairs of an action and a Terraform address."""

    deployment: LabDocument
    changes: list[tuple[str, str]]
    dry_run: bool
    seconds: float
    healed: list[str]


class OneBuiltLab(BuiltLab):
    """`deploy` of one lab that costs nothing."""


class IdleDocument(TypedDict):
    """What the idle agent of a node saw last; times are seconds since 1970. `ends_at` is null while the node is in use."""

    node: str
    seen_at: float
    busy: list[str]
    ends_at: float | None


class CloudStatus(TypedDict):
    """A lab on AWS. `unknown`: why the account could not be asked. `ended`: nodes that ended by themselves, and why."""

    instances: dict[str, str]
    expires: str
    seconds_left: float
    cost_usd: Decimal
    usd_per_hour: Decimal | None
    unknown: str
    stopped: bool
    ended: list[str]
    idle: list[IdleDocument]
    backstop: str


class StackDocument(TypedDict):
    """One lab as it is now."""

    deployment: LabDocument
    healthy: bool
    nodes: list[NodeHealth]
    active_runs: list[str]
    cloud: CloudStatus | None


class StatusDocument(TypedDict):
    """`status`. A stack is a lab; `active_runs` are ids, `cloud` what ends a lab on AWS and what it costs."""

    stacks: list[StackDocument]
    warnings: list[str]


class ReceiptDocument(TypedDict):
    """What one `destroy` did. `leftovers` are still there; `forgotten` may be, on machines that could not be reached; `swept`
    was removed by the scan."""

    stack: str
    uid: str
    module: str
    mode: str
    created: str
    destroyed: str
    existed: list[str]
    removed: list[str]
    swept: list[str]
    leftovers: list[Leftover]
    forgotten: list[Leftover]
    outputs_home: list[str]
    outputs_discarded: list[str]
    regions: list[str]
    ended: list[str]
    cost_usd: str


class DestroyDocument(TypedDict):
    """`destroy`; with `error` if not every lab was removed."""

    receipts: list[ReceiptDocument]
    error: NotRequired[ErrorDocument]


class QuoteLine(TypedDict):
    """One item that costs money, in USD an hour, and the source of its price."""

    what: str
    kind: str
    usd_per_hour: str
    source: str
    date: str
    note: str


class QuoteDocument(TypedDict):
    """The price of one lab in USD."""

    stack: str
    module: str
    title: str
    region: str
    zone: str
    instance_type: str
    gpu: str
    market: str
    nodes: int
    changes: list[tuple[str, str]]
    hours: Decimal
    expires: str
    usual_hours: Decimal
    head: str
    siblings: list[dict[str, Any]]
    notes: list[str]
    usd_per_hour: str
    usd_to_the_end: str
    usd_usually: str
    lines: list[QuoteLine]


class QuoteList(TypedDict):
    """`deploy --dry-run` of labs that cost money. `later`: GPUs that a quota does not allow beside the rest. `reserved_usd`:
    what other labs will still cost until their deadlines, if a budget is set."""

    quotes: list[QuoteDocument]
    later: list[str]
    notes: list[str]
    findings: list[Finding]
    budget_usd: str | None
    spent_usd: str
    reserved_usd: str
    left_usd: str | None


class BuiltLabs(QuoteList):
    """`deploy` of labs that cost money; with `error` if not every lab was built."""

    labs: list[BuiltLab]
    error: NotRequired[ErrorDocument]


class ChangeDocument(TypedDict):
    """`stop`, `start`, `extend`, `keep`, `allow-ip`: sentences about what has changed."""

    stack: str
    module: str
    title: str
    changed: list[str]
    warnings: list[str]
    expires: str
    usd_per_hour: Decimal | None
    next: str


class RunningDocument(TypedDict):
    """One lab that costs now, in USD: an hour, so far, and to its end (null where no deadline is on record)."""

    stack: str
    module: str
    usd_per_hour: Decimal
    usd: Decimal
    expires: str
    usd_to_end: Decimal | None


class CostDocument(TypedDict):
    """A module, an exercise or a kind of resource, and what it cost in USD; hours if it is time that was used."""

    name: str
    usd: Decimal
    hours: float | None
    title: str


class Money(TypedDict):
    """`cost`, in USD; `billed` with --billed."""

    usd: Decimal
    usd_per_hour: Decimal
    usd_to_end: Decimal
    budget_usd: Decimal | None
    left_usd: Decimal | None
    running: list[RunningDocument]
    modules: list[CostDocument]
    exercises: list[CostDocument]
    kinds: list[CostDocument]
    sources: list[str]
    warnings: list[str]
    billed: BilledCost | None


class ScannedDocument(TypedDict):
    """Something that the account holds with the course's tags. `remove` is the command that removes it by hand."""

    kind: str
    id: str
    region: str
    remove: str
    name: str
    state: str
    tags: dict[str, str]
    parent: str
    seen: bool
    note: str
    explained_by: Literal["standing", "another's", "unknown", "leak"]
    stack: str


class Leaks(TypedDict):
    """`leaks`. `unasked`: why other regions may hold something."""

    account: str
    regions: list[str]
    unasked: str
    usd_per_hour: Decimal | None
    things: list[ScannedDocument]


class CleanupDocument(TypedDict):
    """`leaks --clean`: what was removed, and what is left."""

    receipts: list[ReceiptDocument]
    left: list[CloudResource]


class Examination(TypedDict):
    """`doctor` of this computer or of hosts."""

    findings: list[Finding]


class ExaminedAccount(TypedDict):
    """`doctor --target aws`: also what each lab costs."""

    target: str
    region: str
    market: str
    findings: list[Finding]
    prices: list[ModulePrice]
    sources: list[str]
    usd: Decimal


class QuotaState(TypedDict):
    """A quota that is too small, or not known, and the open request for it."""

    quota: Quota
    open: QuotaRequest | None


class Quotas(TypedDict):
    """`doctor --request-quota`: the quotas that are too small, and what was asked for."""

    quotas: list[QuotaState]
    requests: list[QuotaRequest]


class Policy(TypedDict):
    """`doctor --policy`: the IAM policy that the course needs."""

    policy: dict[str, Any]


class Setup(TypedDict):
    """`doctor --setup`: a CloudFormation template."""

    setup: dict[str, Any]
