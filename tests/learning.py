"""A small course with every kind of question, and a workspace with recorded runs: what a learner does, without a lab.

learning = Learning(tmp_path)
learning.record("1.1", {"speedup": 1.9})
learning.types("answer", "1.1", "--set", "speedup=1.9")
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpucourse.cli.boundary import run_command
from gpucourse.context import Context
from gpucourse.course.locate import CourseFolders, find_course
from gpucourse.course.schema import write_schema
from gpucourse.learning.bundle import open_bundle
from gpucourse.learning.grade import grade
from gpucourse.model.deployment import LocalDeployment, LocalVariables
from gpucourse.model.node import Inventory, Node
from gpucourse.model.record import RunRecord
from gpucourse.runs.finish import deliver, judge, seal
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.files import write_record
from gpucourse.workspace.locate import open_workspace
from tests.system.cli import Typed

MANIFEST = """\
format: 1
id: "1"
title: Rivers
summary: How water runs.
hours: 1.5
lab:
  local: {template: simulated, nodes: 1}
exercises:
  - id: "1.1"
    title: Source
    goal: Find where it begins.
    minutes: 20
    script: source.py
    files: [helper.py]
    packages: []
    launch: {kind: python}
    parameters:
      - {name: depth, type: int, default: 100, min: 1, max: 1000, local: 10, help: how deep}
    tasks: [Walk upstream., Note the day.]
    questions:
      - {id: why, text: Why does it run?, look_for: it falls}
      - id: speedup
        text: How much faster?
        kind: numeric
        value: metrics.speedup
        tolerance: 0.05
        unit: times
        explanation: T1 over Tn.
      - id: busy
        text: How busy was it?
        kind: numeric
        low: min(metrics.springs.busy_percent)
        high: max(metrics.springs.busy_percent)
        unit: "%"
      - id: where
        text: Where does it end?
        kind: choice
        options: ["in a lake", "in the sea", nowhere]
        key: b
        explanation: All rivers run into the sea.
      - {id: power, text: Which power?, kind: numeric, value: metrics.power_w, unit: W, tolerance: 1, evidence: gpu}
    hints: [Look up., Look down., Listen.]
    tables:
      - title: Springs
        rows: metrics.springs
        columns: [{key: litres, title: litres, digits: 1}]
    checks:
      - {id: wet, title: It is wet, value: metrics.wet, equals: true, hint: Was it a river?}
      - {id: flows, title: It flows, value: min(metrics.springs.litres), above: 0, unit: l, hint: Wait for rain.}
      - {id: deep, title: It is deep, value: metrics.power_w, above: 0, unit: W, evidence: gpu, hint: Dig.}
    deliverables: [{title: The log, source: logs/*.log}, {title: The measurements, source: metrics.json}]
    no_predict: Nobody knows a river before.
  - id: "1.2"
    title: Mouth
    goal: Find where it ends.
    minutes: 20
    script: source.py
    files: [helper.py]
    packages: []
    launch: {kind: python}
    parameters:
      - {name: depth, type: int, default: 100, min: 1, max: 1000, local: 10, help: how deep}
    tasks: [Walk downstream.]
    no_predict: Nobody knows a river before.
    hints: [Look up., Look down., Listen.]
    checks:
      - {id: wet, title: It is wet, value: metrics.wet, equals: true, hint: Was it a river?}
"""

SCRIPT = '''"""Find the source."""

import argparse
import json
import os
from pathlib import Path

import helper

parser = argparse.ArgumentParser()
parser.add_argument("--depth", type=int, default=100)
depth = parser.parse_args().depth
out = Path(os.environ.get("GPUCOURSE_OUT", "."))
springs = [{"litres": helper.LITRES * depth, "busy_percent": 78}, {"litres": 2.0 * depth, "busy_percent": 96}]
metrics = {"schema": 1, "cuda": None, "device": "a CPU", "wet": True, "speedup": 1.9, "springs": springs, "power_w": None}
metrics["litres_per_s"] = float(depth)
(out / "metrics.json").write_text(json.dumps(metrics))
print("found it")
'''

RUBRIC = """\
format: 1
parts:
  - module: "1"
    title: Rivers
    rows:
      - {id: completed, title: All exercises completed, points: 10, evidence: [checks]}
      - {id: deliverables, title: Deliverables handed in, points: 5, evidence: [deliverables]}
      - {id: understanding, title: Understanding shown, points: 10, evidence: [answers]}
  - module: "9"
    title: Clouds
    counts: bonus
    rows:
      - {id: rain, title: It rained, points: 10, evidence: [checks]}
"""

PLOT = """\
    plots:
      - file: flow
        title: Flow
        kind: line
        rows: metrics.springs
        x: busy_percent
        series: [{key: litres, label: flow}]
        x_title: busy (%)
        y_title: flow (l)
"""
METRICS: dict[str, Any] = {
    "schema": 1, "device": "a CPU", "cuda": None, "wet": True, "speedup": 1.9,
    "springs": [{"litres": 1.5, "busy_percent": 78}, {"litres": 2.5, "busy_percent": 96}], "power_w": None, "litres_per_s": 4.0,
}  # fmt: skip
FOLDER = "01-rivers"
NOW = "2026-01-31T14:25:01+00:00"


class Learning:
    """A learner with a workspace, in a small course."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.root, self.workspace, self.course = root, root / "workspace", root / "course"
        self._patch, self._capture = monkeypatch, capfd
        for name in [name for name in os.environ if name.startswith("GPUCOURSE")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("GPUCOURSE_WORKSPACE", str(self.workspace))
        monkeypatch.setenv("GPUCOURSE_COURSE", str(self.course))
        monkeypatch.setenv("HOME", str(root))
        self.put(f"exercises/{FOLDER}/source.py", SCRIPT)
        self.put("exercises/shared/helper.py", '"""Help."""\n\nLITRES = 1.5\n')
        self.put(f"modules/{FOLDER}/module.yaml", "# yaml-language-server: $schema=../module.schema.json\n" + MANIFEST)
        self.put(f"modules/{FOLDER}/lesson.md", "# Rivers\n")
        self.put("modules/rubric.yaml", RUBRIC)
        write_schema(self.course / "modules")
        self.context = self.open_context()

    def open_context(self) -> Context:
        """Return the context of a command in the workspace."""
        built_in = find_course({})
        folders = CourseFolders(self.course / "modules", self.course / "exercises", built_in.terraform)
        return Context(workspace=open_workspace(self.workspace), folders=folders, environ=os.environ)

    def put(self, name: str, text: str) -> Path:
        """Write a file of the course, and return its path."""
        path = self.course / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def record(
        self, exercise: str = "1.1", metrics: dict[str, Any] | None = None, *, mode: Any = "local", **fields: Any
    ) -> RunRecord:
        """Record and return an ended run, with its files, verdict, deliverables and seal. A run in another `state` is not
        sealed.
        """
        context = self.open_context()
        script = fields.get("own_script")
        place = fields.setdefault("place", runs.script_place(Path(script)) if script else None)
        run_id = runs.new_run(context.paths, place or exercise)
        values: dict[str, Any] = {
            "id": run_id, "exercise": exercise, "module": "1", "stack": "01-local", "mode": mode, "launcher": "python",
            "state": "succeeded", "created": now_utc("milliseconds"), "nodes": ["node0"], "world_size": 1, "collected": True,
            "parameters": {"depth": 10},
        }  # fmt: skip
        record = RunRecord(**(values | fields))
        files = runs.files_of(context.paths, record)
        files.logs.mkdir()
        files.rank_log("node0", 0).write_text("found it\n")
        write_record(files.metrics, (METRICS if metrics is None else metrics) | {"mode": mode})
        write_record(files.plan, {"commands": []})
        _, manifest_exercise = context.catalog.exercise(exercise)
        verdict = judge(context, manifest_exercise, record)
        record.verdict = verdict.verdict if verdict else None
        runs.save(context.paths, record)
        deliver(context.paths, manifest_exercise, record)
        if record.has_ended:
            seal(files, mode)
        return record

    def hand_in(self, name: str = "work.zip", by: str = "Noah") -> Path:
        """Return a bundle of the workspace."""
        path = self.root / name
        self.types("grade", "--bundle", str(path), "--by", by)
        return path

    def leave(self) -> None:
        """Move the learner's workspace away. Further commands are typed in another workspace, an instructor's."""
        self.workspace.rename(self.root / "gone")

    def read_points(self, *words: str, code: int | None = None) -> dict[str, float]:
        """Return the points of each row of the module, in the workspace or in the bundle that `words` name."""
        document = self.types("grade", "--json", *words, code=code).document
        grade = document["bundles"][0]["grade"] if words else document
        return {row["id"]: row["earned"] for row in grade["parts"][0]["rows"]}

    def count_answers(self, bundle: Path, exercise: str) -> list[float]:
        """Return the credit for the answers to an exercise in a bundle, for each row of the rubric that counts answers."""
        with open_bundle(self.open_context(), bundle) as content:
            pieces = [piece for row in grade(content.context).parts[0].rows for piece in row.pieces]
        return [piece.got for piece in pieces if piece.kind == "answers" and piece.exercise == exercise]

    def folder(self, record: RunRecord) -> Path:
        """Return the path of a run's folder."""
        return self.workspace / "runs" / record.folder / record.id

    def types(self, *words: str, code: int | None = 0, typing: str | io.StringIO | None = None) -> Typed:
        """Run a command in this process, and return its output and exit code. `typing`: the text that the person types at a
        terminal, or the terminal."""
        with _replace_stdin(typing, self._patch):
            self._capture.readouterr()
            result = run_command(list(words))
        out, err = self._capture.readouterr()
        assert code is None or result == code, f"gpucourse {' '.join(words)} answered {result}:\n{out}\n{err}"
        return Typed(result, out, err, words)


def deploy(learning: Learning) -> LocalDeployment:
    """Store and return the record of an existing lab of the course."""
    node = Node(name="node0", role="head", mode="local", address="127.0.0.1", port=2200, private_address="127.0.0.1", user="me",
                gpus=0, instance_type="simulated", python="python3")  # fmt: skip
    record = LocalDeployment(
        stack="01-local", uid="u", module="1", template="simulated", phase="ready", created=NOW, updated=NOW, nodes_wanted=1,
        variables=LocalVariables(link=""), inventory=Inventory(stack="01-local", nodes=(node,)),
    )  # fmt: skip
    deployments.save(learning.context.paths, record)
    return record


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


class InterruptedTerminal(Terminal):
    """A terminal at which the person presses Ctrl-C instead of answering."""

    def readline(self, *_: object) -> str:  # type: ignore[override]  # a StringIO is text, whatever its base says
        raise KeyboardInterrupt


def _make_stdin(text: str | io.StringIO | None) -> io.StringIO:
    if isinstance(text, io.StringIO):
        return text
    return io.StringIO() if text is None else Terminal(text)


@contextmanager
def _replace_stdin(text: str | io.StringIO | None, patch: pytest.MonkeyPatch) -> Iterator[None]:
    with patch.context() as patcher:
        patcher.setattr(sys, "stdin", _make_stdin(text))
        yield
