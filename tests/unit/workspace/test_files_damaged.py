"""A file of a workspace that cannot be used, whether a script, a full disk or another user wrote it. Commands about other files
continue, and none reports a bug of the program.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.event import Note
from gpucourse.model.record import NodeExit
from gpucourse.remote.fleet import Fleet
from gpucourse.runs import finish
from gpucourse.workspace import deployments, runs
from tests.learning import Learning

NOW = "2026-01-31T14:25:01+00:00"
CONTENTS: dict[str, Callable[[Path], object]] = {
    "deep": lambda path: path.write_bytes(b'{"a":' + b"[" * 3000 + b"]" * 3000 + b"}"),
    "wrong": lambda path: path.write_bytes(b'{"id": 7, "stack": [], "runs": {}, "commands": [{"node": 7}], "sha256": [1]}'),
    "empty": lambda path: path.write_bytes(b""),
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "pipe": os.mkfifo,
}  # fmt: skip
OF_A_RUN = ("run.json", "metrics.json", "plan.json", "hashes.json", "verdict.json")


def damage(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    CONTENTS[content](path)


@pytest.mark.parametrize(
    ("name", "content"), [*((name, "wrong") for name in OF_A_RUN), ("run.json", "deep"), ("run.json", "empty")]
)
def test_read_each_shows_other_runs_beside_a_damaged_one(learning: Learning, name: str, content: str) -> None:
    first, second = learning.record(), learning.record("1.2")
    damage(learning.folder(first) / name, content)
    assert second.id in learning.types("runs", code=None).out
    assert "found it" in learning.types("logs", second.id).out
    if name == "run.json":
        assert "run.json is damaged" in learning.types("logs", first.id, code=3).err
    learning.types("status")
    learning.types("destroy", "--all")
    assert learning.types("grade", code=None).code in {0, 5}


def lab(learning: Learning, module: str, **text: str) -> None:
    record: dict[str, Any] = {"created": NOW, "updated": NOW, **text}
    stack = f"0{module}-local"
    deployment = LocalDeployment(
        stack=stack, uid="u", module=module, template="simulated", phase="ready", nodes_wanted=0, **record
    )
    deployments.save(learning.context.paths, deployment)
    if "updated" in text:
        path = learning.context.paths.deployment(stack)
        path.write_text(path.read_text().replace(deployment.updated, text["updated"]))


@pytest.mark.parametrize("content", ["wrong", "endless", "pipe"])
def test_read_each_lets_other_labs_be_destroyed_beside_a_damaged_one(learning: Learning, content: str) -> None:
    lab(learning, "1")
    damage(learning.context.paths.deployment("02-local"), content)
    learning.types("trust", str(learning.workspace))  # the endless file belongs to root
    status = learning.types("status")
    assert "01-local" in status.out
    assert "02-local.json is damaged" in status.err
    result = learning.types("destroy", "--all", code=3)
    assert "02-local.json is damaged" in result.err
    assert not learning.context.paths.deployment("01-local").exists()
    learning.types("destroy", "1")  # it is not about the other


@pytest.mark.parametrize("changes", [{"created": ""}, {"created": "2026-01-31T14:25:01"}, {"updated": "soon"}])
def test_check_record_refuses_a_lab_with_a_wrong_time(learning: Learning, changes: dict[str, str]) -> None:
    lab(learning, "1", **changes)
    result = learning.types("status")
    assert "01-local.json is damaged" in result.err
    assert "Nothing is deployed" not in result.out


def test_check_record_refuses_a_lab_under_another_name(learning: Learning) -> None:
    lab(learning, "1")
    path = learning.context.paths.deployment("01-local")
    path.write_text(path.read_text().replace('"01-local"', '"../../.."'))
    assert "01-local.json is damaged" in learning.types("destroy", "--all", code=3).err
    assert learning.workspace.is_dir()


@pytest.mark.parametrize(
    "metrics",
    [
        b'{"wet": ' + b"[" * 3000 + b"]" * 3000 + b"}",
        b'{"wet": true, "power_w": ' + b"9" * 400 + b"}",
        b'{"springs": [' + b'{"litres": 1},' * 400_000 + b"{}]}",
        b'{"wet": "\\ud800"}',
    ],
    ids=["deep", "digits", "rows", "surrogate"],
)
def test_read_metrics_that_cannot_be_used_ends_a_run_as_an_error(learning: Learning, metrics: bytes) -> None:
    notes: list[str] = []
    record = learning.record()
    context = learning.open_context()
    context = context.watched_by(lambda event: notes.append(event.text) if isinstance(event, Note) else None)
    record.node_exits = [NodeExit(node="node0", code=0)]
    files = runs.files_of(context.paths, record)
    files.metrics.unlink()
    files.node_outputs("node0").mkdir(parents=True)
    (files.node_outputs("node0") / "metrics.json").write_bytes(metrics)
    verdict = finish.finish(context, Fleet(context.transport, ()), record)  # the node's files are here already
    assert verdict is not None
    assert verdict.verdict == "error"
    assert "the script's measurements are not used" in notes[0]
    assert "error" in learning.types("runs").out
    assert "found it" in learning.types("logs").out
