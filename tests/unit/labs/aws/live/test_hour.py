"""The live hour with commands that only answer: what is typed, what it may cost, and that everything is taken down."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpucourse.context import Context
from gpucourse.course.locate import find_course
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.aws.live import hour as live
from gpucourse.labs.aws.live.commands import Answer, run_command
from gpucourse.labs.aws.live.evidence import scrub
from gpucourse.workspace import deployments
from gpucourse.workspace.locate import open_workspace
from tests.unit.labs.aws.fakes import deployment_of

PAGE = (Path(__file__).parents[5] / "docs" / "live-hour.md").read_text(encoding="utf-8")
DEPLOYS = [step for step in live.STEPS if step.builds]
EMPTY_SWEEP = '{"version": 1, "things": []}'


@dataclass
class Answers:
    """Types nothing: every command takes `seconds` on the clock and goes well, but for those that a test says."""

    seconds: float = 60.0
    now: float = 0.0
    sweep: str = EMPTY_SWEEP
    instead: dict[tuple[str, ...], Callable[[], Answer]] = field(default_factory=dict)
    limits: list[float] = field(default_factory=list)
    words: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, words: Sequence[str], environ: Mapping[str, str], limit_s: float) -> Answer:
        assert environ["GPUCOURSE_WORKSPACE"].endswith("live-hour")
        self.words.append(tuple(words))
        self.limits.append(limit_s)
        self.now += 600.0 if tuple(words) == live.TAKE_DOWN.words else min(self.seconds, limit_s)
        if answer := self.instead.get(tuple(words)):
            return answer()
        return Answer(code=0, out=self.sweep if words[0] == "leaks" else "", err="", seconds=self.seconds)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    workspace = open_workspace(tmp_path / "work space")
    return Context(workspace=workspace, folders=find_course({}), environ={"HOME": "/home/ada", "PATH": "/usr/bin"})


def make_hour(context: Context, answers: Answers, most: str = "3") -> live.Hour:
    hour = live.prepare(context, Decimal(most))
    hour.run, hour.read, hour.meter.clock = answers.run, lambda _context, _number: {}, lambda: answers.now
    return hour


def read_evidence(hour: live.Hour) -> Any:
    return json.loads(hour.evidence_file.read_text(encoding="utf-8"))


def test_steps_are_those_of_the_page() -> None:
    rows = re.findall(r"^\| `gpucourse ([^`]+)` \| ([^|]+) \|$", PAGE, re.MULTILINE)
    shown = [(step.words, step.look) for step in (*live.STEPS, live.SWEEP)]
    assert [(tuple(command.split()), look) for command, look in rows] == [
        (tuple(word for word in words if word not in {"--json", "--yes"}), look) for words, look in shown
    ]
    assert "It has never run against AWS" in PAGE


@pytest.mark.parametrize(
    ("step", "problem", "outcome"),
    [(DEPLOYS[0], None, "failed"), (DEPLOYS[1], KeyboardInterrupt, "interrupted"), (DEPLOYS[1], KeyError, "failed")],
    ids=["a failure", "an interruption", "a bug"],
)
def test_drive_takes_everything_down_whatever_ends_the_hour(
    context: Context, step: live.Step, problem: type[BaseException] | None, outcome: str
) -> None:
    def answer() -> Answer:
        if problem is not None:
            raise problem
        return Answer(code=6, out="", err="it says why", seconds=1.0)

    answers = Answers(instead={step.words: answer})
    hour = make_hour(context, answers)
    with pytest.raises(KeyError) if problem is KeyError else nullcontext():
        live.drive(hour)
    assert hour.outcome == outcome
    assert answers.words[-3:] == [step.words, live.TAKE_DOWN.words, live.SWEEP.words]
    assert read_evidence(hour)["outcome"] == outcome


def test_drive_gives_no_command_more_time_than_the_money_lasts(context: Context) -> None:
    answers = Answers(seconds=10_000.0)
    hour = live.drive(make_hour(context, answers))
    assert hour.outcome == "out of money"
    assert answers.words[-2:] == [live.TAKE_DOWN.words, live.SWEEP.words]
    assert max(answers.limits) <= live.STEP_S
    assert answers.limits[-3] < live.STEP_S, "the last command had what the money left"
    assert Decimal("2.50") < hour.meter.usd <= 3


def test_prepare_refuses_an_amount_that_forgotten_labs_would_exceed(context: Context) -> None:
    with pytest.raises(UsageError, match="two labs that nobody takes down cost") as caught:
        live.prepare(context, Decimal(1))
    assert caught.value.hint == "gpucourse dev live --max-usd 2"
    hour = live.prepare(context, Decimal(2))
    assert live.least_usd(hour.meter.usd_per_hour) <= 2
    assert hour.context.settings.budget_usd == 2
    labs = [module.lab.aws for module in hour.context.catalog.modules if module.lab.aws]
    assert {(lab.gpu, lab.size, lab.nodes, lab.max_nodes) for lab in labs} == {("t4", "xlarge", 1, 1)}


def test_prepare_refuses_while_an_earlier_hour_left_a_lab(context: Context) -> None:
    hour = live.prepare(context, Decimal(3))
    lab = deployment_of("2")
    deployments.save(hour.context.paths, lab)
    with pytest.raises(MissingError, match="left 02-aws-t4") as caught:
        live.prepare(context, Decimal(3))
    assert "live-hour' destroy --all" in caught.value.hint


def test_drive_names_what_is_left_and_takes_no_answer_for_unknown(context: Context) -> None:
    course = live.prepare(context, Decimal(3)).context.workspace.id
    thing = {"kind": "instance", "id": "i-1", "region": "us-east-2", "remove": "aws ...", "seen": True}
    thing["tags"] = {"Course": course}
    stranger = {**thing, "id": "i-2", "tags": {"Course": "another"}}
    unseen = {**thing, "id": "volumes", "seen": False, "tags": {}}
    document = {"version": 1, "things": [thing, stranger, unseen]}
    hour = live.drive(make_hour(context, Answers(sweep=json.dumps(document))))
    assert hour.left == ["instance i-1 in us-east-2: aws ...", "instance volumes in us-east-2: aws ..."]
    silent = live.drive(make_hour(context, Answers(sweep="")))
    assert silent.left == ["unknown: the sweep gave no answer"]


def test_run_command_interrupts_a_command_that_takes_too_long(context: Context) -> None:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(context.paths.root), "GPUCOURSE_WORKSPACE": str(context.paths.root)}
    answer = run_command(("list",), environ, 0.0)
    assert not answer.in_time
    assert answer.code != 0


def test_scrub_leaves_no_secret_account_address_or_person() -> None:
    environ = {"HOME": "/home/ada", "USER": "ada", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG"}
    said = {
        "arn:aws:iam::123456789012:user/ada.lovelace": ["AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG"],
        "owner": "ada",
        "tags": {"Owner": "ada", "Project": "gpucourse"},
        "text": "at 203.0.113.7, ec2-3-1-2-4.us-east-2, ada@example.org, ssh-ed25519 AAAAC3NzaC1lZDI1 in /home/ada/x",
        "host_key": "AAAAC3",
        "kept": ["i-0123456789abcdef0", "us-east-2", 0.54, None, "2026-11-22T21:00:00+00:00", "role/gpucourse-backstop"],
    }
    clean = json.dumps(scrub(said, environ))
    for secret in ("1234567890", "ada", "AKIA", "wJalr", "203.0", "3-1-2-4", "AAAA", "example.org"):
        assert secret not in clean, secret
    assert scrub(said, environ)["kept"] == said["kept"]
