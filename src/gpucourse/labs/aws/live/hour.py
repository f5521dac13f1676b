"""The live hour: two labs one after the other, each examined and taken down, then a leak scan; every command is recorded.

Two independent limits keep it within the agreed amount. It begins only if both labs together cost less than that even if both
run until their own deadlines. And each command gets no more time than the rest of the money lasts, with a reserve for taking
down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import ROUND_UP, Decimal
from pathlib import Path
from typing import Any, Literal

import gpucourse
from gpucourse.aws import schedule
from gpucourse.aws.pricing import PriceBook, estimate
from gpucourse.context import Context
from gpucourse.course.catalog import load
from gpucourse.errors import ExitCode, MissingError, UsageError
from gpucourse.labs.aws.live.commands import Answer, hold_signals_off, run_command
from gpucourse.labs.aws.live.course import ON_DEMAND, SPOT, TTL_H, write_course
from gpucourse.labs.aws.live.evidence import write_evidence
from gpucourse.labs.aws.live.facts import read_module_facts
from gpucourse.labs.aws.needs import needs
from gpucourse.model.event import Watcher, stage
from gpucourse.model.money import time_for, usd_over, usd_per_hour
from gpucourse.storage import write_bytes
from gpucourse.units import now_utc
from gpucourse.workspace import deployments
from gpucourse.workspace.files import to_json
from gpucourse.workspace.locate import open_workspace
from gpucourse.workspace.stack_paths import LiveHourPaths

STEP_S, TAKE_DOWN_S = 2700.0, 900.0
_SETTINGS = {"region", "ssh_cidr", "ssh_proxy_command", "node_python", "rendezvous_ports"}
Outcome = Literal["done", "failed", "interrupted", "out of money"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command of the hour: what to check in its answer, whether its failure ends the hour, and the lab whose costs it
    starts or ends."""

    words: tuple[str, ...]
    look: str
    needed: bool = True
    builds: str = ""
    removes: str = ""


def _lab(number: str, market: str, looks: Sequence[tuple[tuple[str, ...], str]]) -> tuple[Step, ...]:
    deploy = ("deploy", number, "--target", "aws", market, "--ttl", f"{TTL_H}h", "--yes", "--json")
    return (
        Step(words=deploy, look="the seconds until the node is ready, the host key, the backstop", builds=number),
        *(Step(words=("ssh", number, "--", *command), look=look, needed=False) for command, look in looks),
        Step(
            words=("destroy", number, "--yes", "--discard", "--json"),
            look="the seconds, and that nothing is left",
            removes=number,
        ),
    )


STEPS = (
    Step(words=("doctor", "--target", "aws", "--json"), look="no line says missing"),
    Step(words=("doctor", "--target", "aws", "--spot", "--json"), look="no line says missing, for spot instances"),
    *_lab(
        ON_DEMAND,
        "--no-spot",
        [
            (("systemd-analyze",), "how long the boot took"),
            (("nvidia-smi", "-L"), "the GPU and its driver are there"),
            (("cat", "/var/lib/gpucourse/ready"), "what the first boot found"),
        ],
    ),
    *_lab(SPOT, "--spot", [(("df", "-hT", "/shared"), "the shared storage is mounted")]),
)
SWEEP = Step(words=("leaks", "--json"), look="nothing of the hour is left", needed=False)
TAKE_DOWN = Step(words=("destroy", "--all", "--yes", "--discard", "--json"), look="nothing is left", needed=False)


@dataclass
class Meter:
    """What the hour has cost at most: every lab at the list price on demand, from the start of its first command to the end of
    its last."""

    most: Decimal
    usd_per_hour: Decimal
    clock: Callable[[], float] = time.monotonic
    seconds: float = 0.0
    since: float | None = None

    def start(self) -> None:
        """Start the meter: a lab is about to be built."""
        self.since = self.clock() if self.since is None else self.since

    def stop(self) -> None:
        """Stop the meter: the lab is gone."""
        self.seconds, self.since = self._billed_s, None

    @property
    def _billed_s(self) -> float:
        return self.seconds + (self.clock() - self.since if self.since is not None else 0.0)

    @property
    def usd(self) -> Decimal:
        """Return USD so far, rounded up to a cent."""
        return usd_over(self.usd_per_hour, timedelta(seconds=self._billed_s)).quantize(Decimal("0.01"), ROUND_UP)

    @property
    def allowed_s(self) -> float:
        """Return how many seconds a lab may continue before it has to be taken down."""
        return time_for(self.most, self.usd_per_hour).total_seconds() - self._billed_s - TAKE_DOWN_S


@dataclass
class Hour:
    """A prepared hour, in a separate workspace. `run` runs a command, `read` asks AWS about a lab."""

    context: Context
    evidence_file: Path
    meter: Meter
    watch: Watcher
    run: Callable[[Sequence[str], Mapping[str, str], float], Answer] = run_command
    read: Callable[[Context, str], dict[str, Any]] = read_module_facts
    steps: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    outcome: Outcome = "failed"
    began: str = field(default_factory=now_utc)

    @property
    def evidence(self) -> dict[str, Any]:
        """Return the content of the evidence file, before private data is removed."""
        return {
            "format": 1,
            "gpucourse": gpucourse.__version__,
            "region": self.context.settings.region,
            "began": self.began,
            "ended": now_utc(),
            "outcome": self.outcome,
            "usd_at_most": str(self.meter.usd),
            "usd_agreed": str(self.meter.most),
            "steps": self.steps,
            "facts": self.facts,
            "left": self.left,
        }


def least_usd(price: Decimal) -> Decimal:
    """Return what both labs cost if they are not taken down: each until its deadline, and ten minutes more for the backstop."""
    times = 2 * (timedelta(hours=TTL_H) + schedule.AFTER)
    return usd_over(price, times).quantize(Decimal("0.01"), ROUND_UP)


def prepare(context: Context, most: Decimal) -> Hour:
    """Return an hour in a separate workspace, below this one, with the settings for the region and the connection to AWS.

    Raises UsageError if the amount is too small, MissingError if an earlier hour left a lab.
    """
    files = LiveHourPaths(context.paths.root)
    root, paths = files.root, open_workspace(files.root).paths
    standing = deployments.every(paths)
    if standing:
        named = ", ".join(deployment.stack for deployment in standing)
        raise MissingError(
            f"an earlier live hour left {named}", hint=f"gpucourse --workspace '{root}' destroy --all, then gpucourse leaks"
        )
    folders = write_course(files.course)
    book = PriceBook(region=context.settings.region)
    price = max(usd_per_hour(estimate(book, need)) for need in needs(load(folders)))
    least = least_usd(price)
    if most < least:
        raise UsageError(
            f"--max-usd {most}: two labs that nobody takes down cost ${least} until their deadlines",
            hint=f"gpucourse dev live --max-usd {least.to_integral_value(ROUND_UP)}",
        )
    settings = context.settings.model_dump(mode="json", include=_SETTINGS, exclude_unset=True)
    write_bytes(paths.settings, to_json({**settings, "budget_usd": float(most)}))  # JSON is YAML
    environ = {**context.environ, "GPUCOURSE_WORKSPACE": str(root), "GPUCOURSE_COURSE": str(files.course)}
    own = Context(workspace=open_workspace(root), folders=folders, environ=environ)
    return Hour(context=own, evidence_file=files.evidence, meter=Meter(most=most, usd_per_hour=price), watch=context.watch)


def drive(hour: Hour) -> Hour:
    """Run the whole hour: when this returns or raises, everything was taken down, or is named in `left`.

    An interruption (Ctrl-C, SIGTERM, a closed terminal) ends the hour, but never interrupts taking down.
    """
    try:
        hour.outcome = _do_steps(hour)
    except KeyboardInterrupt:
        hour.outcome = "interrupted"
    finally:
        with hold_signals_off():
            _take_down(hour)
    return hour


def _do_steps(hour: Hour) -> Outcome:
    for step in STEPS:
        if hour.meter.allowed_s <= 0:
            return "out of money"
        if step.builds:
            hour.meter.start()
        answer = _do(hour, step, min(STEP_S, hour.meter.allowed_s))
        if step.needed and answer.code != 0:
            return "failed" if answer.in_time else "out of money"
        if step.builds:
            hour.facts[step.builds] = hour.read(hour.context, step.builds)
            _keep(hour)
        if step.removes:
            hour.meter.stop()
    return "done"


def _do(hour: Hour, step: Step, limit_s: float) -> Answer:
    """Run one command, and record it with its answer."""
    command = f"gpucourse {' '.join(step.words)}"
    record: dict[str, Any] = {"command": command, "look_at": step.look, "code": ExitCode.INTERRUPTED}
    hour.steps.append(record)
    with stage(hour.watch, f"step {len(hour.steps)}", command):
        answer = hour.run(step.words, hour.context.environ, limit_s)
    record |= {"code": answer.code, "seconds": answer.seconds, "in_time": answer.in_time}
    record |= {"document": answer.document} if answer.document else {"out": answer.out[-4000:]}
    record["err"] = answer.err[-4000:]
    _keep(hour)
    return answer


def _take_down(hour: Hour) -> None:
    """Remove what may still exist, scan the whole account, and record what is left."""
    if hour.outcome != "done" or deployments.every(hour.context.paths):
        _do(hour, TAKE_DOWN, STEP_S)
    hour.meter.stop()
    sweep = _do(hour, SWEEP, STEP_S)
    hour.left = _list_left(sweep, hour.context.workspace.id)
    _keep(hour)


def _list_left(sweep: Answer, course: str) -> list[str]:
    """Return what the account still has of this hour, with ids; a scan without an answer proves nothing."""
    if "things" not in sweep.document:
        return ["unknown: the sweep gave no answer"]
    return [
        f"{thing['kind']} {thing['id']} in {thing['region']}: {thing['remove']}"
        for thing in sweep.document["things"]
        if not thing["seen"] or thing["tags"].get("Course") == course
    ]


def _keep(hour: Hour) -> None:
    """Write the evidence, after each step, so that even a killed hour leaves what it recorded."""
    write_evidence(hour.evidence_file, hour.evidence, hour.context.environ)
