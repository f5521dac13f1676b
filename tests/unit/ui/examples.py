"""A small course, a lab and a run to draw, and a way to draw a view."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta

import yaml

from gpucourse.model.deployment import AwsDeployment, Cloud, Deployment, LocalDeployment
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.node import Inventory, Node
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import CheckResult, ExerciseVerdict
from gpucourse.ui.render import render
from gpucourse.ui.tables import View
from gpucourse.units import now_utc


def text(view: View) -> str:
    """Return the view in a pipe; drawing it on a narrow terminal must work as well."""
    assert render(view, width=60, colour=True)
    return render(view)


MANIFEST = """
format: 1
id: "3"
title: Parallel computing
summary: Several processes, one model.
hours: 1.5
needs: ["1"]
lab:
  local: {template: simulated, nodes: 2}
exercises:
  - id: "3.1"
    title: Hello
    goal: Say hello.
    minutes: 20
    script: hello.py
    launch: {kind: torchrun, nodes: 2}
    tasks: [Start it., "Read the [bold]logs[/bold]."]
    hints: [First hint., Second hint.]
    questions:
      - {id: why, text: "Why?"}
    parameters:
      - {name: size, type: int, default: 4096, local: 64, min: 1, max: 1000000, help: elements}
      - {name: mode, type: str, default: sum, choices: [sum, max], help: what to do}
      - {name: fast, type: bool, default: true, help: or slow}
    checks:
      - {id: ranks, title: All ranks, value: count(metrics.r), equals: plan.world_size, hint: h}
      - {id: bw, title: Bandwidth, value: metrics.bw, at_least: 5, unit: GB/s, evidence: gpu, hint: h}
    tables:
      - title: Times
        rows: metrics.rows
        columns: [{key: n, title: nodes}, {key: ms, title: ms, digits: 2}]
    deliverables:
      - {title: The log, source: logs/*.log}
  - id: "3.2"
    title: Training
    goal: Train.
    minutes: 60
    script: train.py
    launch: {kind: python}
    tasks: [Do it.]
    hints: [h]
"""
MODULE = Module.model_validate(yaml.safe_load(MANIFEST))
EXERCISE: Exercise = MODULE.exercises[0]
RESULTS = (
    CheckResult(id="ranks", title="All ranks", verdict="passed", evidence="logic", observed="2 ranks", expected="2 ranks"),
    CheckResult(
        id="sum", title="The sum", verdict="failed", evidence="logic", observed="2", expected="3", hint="Fill the tensor anew."
    ),
    CheckResult(
        id="loss", title="Loss", verdict="error", evidence="logic", observed="missing", expected="below 2", hint="Write it."
    ),
    CheckResult(id="bw", title="Bandwidth", verdict="not_measured", evidence="gpu", observed="", expected="at least 5 GB/s"),
)
VERDICT = ExerciseVerdict(exercise="3.1", run="r1", mode="local", verdict="failed", checks=RESULTS)


def node(number: int) -> Node:
    return Node(
        name=f"node{number}", role="worker" if number else "head", address="127.0.0.1", port=2200 + number,
        private_address="127.0.0.1", user="learner", gpus=0, instance_type="simulated", python="/usr/bin/python3", mode="local",
    )  # fmt: skip


def deployment(**changes: object) -> LocalDeployment:
    values: dict[str, object] = {
        "stack": "m3-local", "uid": "u", "module": "3", "title": "Parallel computing", "template": "simulated",
        "phase": "ready", "created": now_utc(), "updated": now_utc(), "nodes_wanted": 2,
        "inventory": Inventory(stack="m3-local", nodes=(node(0), node(1))),
    }  # fmt: skip
    return LocalDeployment(**(values | changes))  # type: ignore[arg-type]


def record(**changes: object) -> RunRecord:
    values: dict[str, object] = {
        "id": "20261121-101500-otter", "exercise": "3.1", "module": "3", "stack": "m3-local", "mode": "local",
        "launcher": "torchrun", "state": "succeeded", "created": now_utc(), "nodes": ["node0", "node1"], "world_size": 2,
        "phases_s": {"run": 12.34}, "parameters": {"size": 64, "note": "it's $(x)"}, "collected": True,
    }  # fmt: skip
    return RunRecord(**(values | changes))  # type: ignore[arg-type]


END = (datetime.now(UTC) + timedelta(hours=2, seconds=30)).isoformat()
CLOUD = Cloud(
    region="us-east-2", zone="us-east-2a", instance_type="g4dn.2xlarge", gpu="t4", owner="ada", ssh_cidr="203.0.113.7/32",
    ttl_hours=4, expires=END,
)  # fmt: skip


def aws_deployment() -> AwsDeployment:
    common = {
        field.name: getattr(deployment(), field.name)
        for field in fields(Deployment)
        if field.name not in {"target", "stack", "cloud"}
    }
    return AwsDeployment(stack="03-aws-t4", cloud=CLOUD, **common)


def render_page(view: View) -> str:
    """Return the view at 80 columns; commands to copy may be wider, nothing else."""
    page = render(view, width=80)
    wide = [line for line in page.splitlines() if len(line) > 80 and "aws " not in line]
    assert wide == []
    return page
