"""Fakes for tests of labs on AWS: a workspace, a module, and nodes that answer from a script."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpucourse.aws.money import PriceBook
from gpucourse.context import Context
from gpucourse.labs.aws.choice import Choice, need_of
from gpucourse.labs.aws.plan import LabPlan
from gpucourse.model.cloud import Offers
from gpucourse.model.deployment import AwsDeployment, Cloud
from gpucourse.model.event import Event
from gpucourse.model.labs import AwsLab
from gpucourse.model.manifest import Module
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult, Link
from gpucourse.remote.fleet import Fleet
from gpucourse.units import later, now_utc
from gpucourse.workspace.locate import open_workspace
from tests.course import CATALOG, FOLDERS

Answer = Callable[[Node, str], CommandResult]


def context_in(folder: Path) -> tuple[Context, list[Event]]:
    """Return a workspace with the real course, and the events that a command reports."""
    events: list[Event] = []
    workspace = open_workspace(folder / "work")
    context = Context(workspace=workspace, folders=FOLDERS, environ={}, watch=events.append)
    context.opened.catalog = CATALOG  # read once for all tests
    return context, events


def module_with(lab: AwsLab, context: Context, number: str = "3") -> Module:
    """Return a module of the course with another lab on AWS."""
    module = context.catalog.module(number)
    return module.model_copy(update={"lab": module.lab.model_copy(update={"aws": lab})})


def choice_of(module: Module, *, gpu: str = "t4", nodes: int | None = None, standing: AwsDeployment | None = None) -> Choice:
    """Return the choice of a lab."""
    lab = module.lab.aws
    assert lab is not None
    return Choice(
        module=module,
        lab=lab,
        gpu=gpu,
        need=need_of(module, gpu=gpu, nodes=nodes),
        nodes=nodes or lab.nodes,
        market="on-demand",
        region="us-east-2",
        ttl_hours=4.0,
        existing=standing,
    )


def plan_of(choice: Choice, deployment: AwsDeployment, book: PriceBook | None = None, *, hours: str = "4") -> LabPlan:
    """Return the plan of a lab, at the prices that ship with the course, without Terraform and without a zone."""
    lab: Any = None
    return LabPlan(
        choice=choice,
        deployment=deployment,
        lab=lab,
        offers=Offers(region="us-east-2", by_type={}, zones=()),
        book=book or PriceBook(region="us-east-2"),
        hours=Decimal(hours),
        interrupted=False,
    )


def deployment_of(module: str = "3", *, gpu: str = "t4", hours: float = 4.0, **cloud: object) -> AwsDeployment:
    """Return the record of a lab on AWS."""
    now = now_utc()
    fields = {
        "account": "123456789012",
        "region": "us-east-2",
        "zone": "us-east-2a",
        "instance_type": "g4dn.2xlarge",
        "gpu": gpu,
        "owner": "ada",
        "ssh_cidr": "203.0.113.7/32",
        "ttl_hours": hours,
        "expires": later(now, hours * 3600),
        **cloud,
    }
    return AwsDeployment(
        stack=f"0{module}-aws-{gpu}",
        uid="c0ffee-1",
        module=module,
        template="parallel",
        phase="ready",
        created=now,
        updated=now,
        nodes_wanted=2,
        cloud=Cloud(**fields),  # type: ignore[arg-type]  # the test's own words
    )


def node(name: str, *, gpus: int = 1, role: str = "worker", address: str = "127.0.0.1") -> Node:
    """Return one node of such a lab."""
    return Node(
        name=name,
        role="head" if role == "head" else "worker",
        address=address,
        port=22,
        private_address=address,
        user="ubuntu",
        gpus=gpus,
        instance_type="g4dn.2xlarge" if gpus else "t3.medium",
        python="python3",
        mode="aws",
        host_key="ssh-ed25519 AAAA",
    )


class ScriptedLink:
    """A link whose node answers from a function of the command."""

    alive = True

    def __init__(self, node: Node, answer: Answer) -> None:
        self.node = node
        self._answer = answer

    def run(self, command: str, *, stdin: object = b"", timeout_s: float = 60.0) -> CommandResult:
        if " probe " in command:
            return answer_probe(shlex.split(command.partition(" probe ")[2])[0])
        return self._answer(self.node, command)

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
        yield iter((self._answer(self.node, command).stdout,))

    def close(self) -> None:
        self.alive = False


def answer_probe(text: str) -> CommandResult:
    """Return the agent's answer on such a node: every module, no program but sh, and free ports in the middle of the range."""
    request = json.loads(text)
    answer = {
        "python_version": "3.12.3",
        "modules": {name: None if name == "no_such_package" else "2" for name in request["modules"]},
        "missing_programs": [name for name in request["programs"] if name != "sh"],
        "free_ports": sorted({min(request["first_port"] + further, request["last_port"]) for further in (31, 32)}),
        "cores": 4,
        "clock": 1.0,
    }
    return make_completed(json.dumps(answer))


class ScriptedNodes:
    """A transport to such nodes."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def connect(self, node: Node, *, timeout_s: float = 10.0, shared: str = "") -> Link:
        return ScriptedLink(node, self._answer)


def fleet_of(answer: Answer, *nodes: Node) -> Fleet:
    """Return such nodes in the form in which actions use them."""
    return Fleet(ScriptedNodes(answer), nodes)


def make_completed(text: str = "", *, code: int = 0, complaint: str = "") -> CommandResult:
    """Return the result of a command on a node."""
    return CommandResult(code=code, stdout=text.encode(), stderr=complaint.encode())


ONE_NODE = AwsLab(template="benchmark", gpu="t4", size="xlarge", nodes=1, max_nodes=1)
CLUSTER = AwsLab(template="slurm-cluster", gpu="t4", size="xlarge", nodes=3, min_nodes=2, head=True, storage_gib=5)
