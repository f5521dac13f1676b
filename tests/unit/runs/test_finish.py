"""The files in `deliverables/`: those of the newest good run, complete, next to the learner's own files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import UnreachableError
from gpucourse.model.event import Event, Note
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Node
from gpucourse.model.record import NodeExit, RunRecord, RunState
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.ports import CommandResult
from gpucourse.remote.fleet import Fleet
from gpucourse.runs.finish import _collect, _draw, deliver, finish, judge_again, seal, seal_screen
from gpucourse.runs.parts import has_code
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_json, write_record
from gpucourse.workspace.seals import find_changed_files
from tests.learning import FOLDER, MANIFEST, METRICS, PLOT, Learning
from tests.unit.learning.test_try import RIGHT, put_parts, run_with, states
from tests.unit.remote.agent_link import AgentNodes, make_ended_job, make_nodes
from tests.unit.runs.test_parts import NoTorch

EXERCISE = Exercise.model_validate(
    {
        "id": "3.2", "title": "t", "goal": "g", "minutes": 1, "script": "s.py", "launch": {"kind": "torchrun"}, "tasks": ["t"],
        "hints": ["h"],
        "deliverables": [{"title": "logs", "source": "logs/*.log"}, {"title": "metrics", "source": "metrics.json"}],
    }
)  # fmt: skip


def save_an_ended_run(
    context: Context, run_id: str, ranks: int, verdict: str | None = "passed", state: str = "succeeded", moment: str = ""
) -> RunRecord:
    record = RunRecord(
        id=run_id, exercise="3.2", module="3", stack="03-local", mode="local", launcher="torchrun",
        state=state, created=moment or run_id, verdict=verdict,  # type: ignore[arg-type]
    )  # fmt: skip
    files = runs.files_of(context.paths, record)
    files.logs.mkdir(parents=True)
    for rank in range(ranks):
        files.rank_log(f"node{rank}", rank).write_text(f"{run_id} {rank}")
    files.metrics.write_text("{}")
    write_record(files.verdict, ExerciseVerdict(exercise="3.2", run=run_id, mode="local", verdict="passed"))
    runs.save(context.paths, record)
    return record


def read_handed_in_logs(context: Context) -> dict[str, str]:
    folder = context.paths.deliverables("3.2")
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.log")}


def test_deliver_replaces_an_older_run_but_no_file_of_the_learner(context: Context) -> None:
    deliver(context.paths, EXERCISE, save_an_ended_run(context, "20260101-000000-a", ranks=3))
    (context.paths.deliverables("3.2") / "answers.yaml").write_text("mine")
    deliver(context.paths, EXERCISE, save_an_ended_run(context, "20260102-000000-b", ranks=1))
    assert read_handed_in_logs(context) == {"logs/node0-rank0.log": "20260102-000000-b 0"}
    assert (context.paths.deliverables("3.2") / "answers.yaml").read_text() == "mine"


def test_deliver_and_seal_leave_out_a_link_to_a_file_elsewhere(context: Context, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    record = save_an_ended_run(context, "20260101-000000-a", ranks=1)
    files = runs.files_of(context.paths, record)
    (files.logs / "planted.log").symlink_to(tmp_path / "secret")
    seal(files, "local")
    deliver(context.paths, EXERCISE, record)
    assert "logs/planted.log" not in read_json(files.hashes)["sha256"]
    assert read_handed_in_logs(context) == {"logs/node0-rank0.log": "20260101-000000-a 0"}


def test_deliver_takes_the_later_one_of_two_runs_of_one_second(context: Context) -> None:
    moments = {"20260101-000000-z": "2026-01-01T00:00:00.100+00:00", "20260101-000000-a": "2026-01-01T00:00:00.900+00:00"}
    records = [save_an_ended_run(context, run_id, ranks=1, moment=moment) for run_id, moment in moments.items()]
    for record in (*records, records[0]):  # the earlier one comes home again, late
        deliver(context.paths, EXERCISE, record)
    assert read_handed_in_logs(context) == {"logs/node0-rank0.log": "20260101-000000-a 0"}


@pytest.mark.parametrize(
    ("verdict", "state"), [("failed", "succeeded"), ("error", "succeeded"), (None, "succeeded"), ("passed", "failed")]
)
def test_deliver_hands_nothing_in_of_a_run_that_is_not_good(context: Context, verdict: str | None, state: str) -> None:
    deliver(context.paths, EXERCISE, save_an_ended_run(context, "20260101-000000-a", ranks=1, verdict=verdict, state=state))
    assert read_handed_in_logs(context) == {}


def test_seal_screen_adds_the_screen_to_the_seal_that_shows_a_later_change(context: Context) -> None:
    record = save_an_ended_run(context, "20260101-000000-a", ranks=1)
    files = runs.files_of(context.paths, record)
    seal(files, "local")
    first = read_json(files.hashes)["sha256"]
    assert set(first) == {"run.json", "logs/node0-rank0.log", "metrics.json", "verdict.json"}
    files.screen.write_text("<svg/>")
    seal_screen(files)
    assert set(read_json(files.hashes)["sha256"]) == {*first, "screen.svg"}
    files.metrics.write_text('{"better": true}')
    seal(files, "local")
    assert read_json(files.hashes)["sha256"]["metrics.json"] != first["metrics.json"]


NODE = Node(
    name="node0", role="head", address="h", port=1, private_address="", user="u", gpus=0, instance_type="", python="/p",
    mode="local", host_key="k",
)  # fmt: skip


class Answering:
    """A transport to one node that answers every stream with the same bytes and records the requests. Implements
    ports.Transport and ports.Link.
    """

    node = NODE
    alive = True

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.asked: list[bytes] = []

    def connect(self, _node: Node, *, timeout_s: float = 10.0, shared: str = "") -> Answering:
        assert timeout_s
        return self

    def run(self, _command: str, *, stdin: object = b"", timeout_s: float = 60.0) -> CommandResult:
        assert timeout_s
        return CommandResult(code=0, stdout=b"", stderr=stdin if isinstance(stdin, bytes) else b"")

    @contextmanager
    def stream(self, _command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
        assert silence_s
        self.asked.append(stdin)
        yield iter(self.pieces)

    def close(self) -> None:
        self.alive = True


def test_finish_sends_the_limit_of_the_settings_to_the_node(context: Context) -> None:
    context.paths.settings.write_text("output_limit: 3 MiB\n")
    record, node = save_an_ended_run(context, "20260101-000000-a", ranks=1), Answering()
    with Fleet(node, [NODE]) as fleet, pytest.raises(UnreachableError, match="ends early"):
        _collect(context, fleet, record, EXERCISE, runs.files_of(context.paths, record), None)
    assert json.loads(node.asked[0])["output_limit"] == 3 << 20


def test_judge_again_without_torch_here_judges_no_part_and_keeps_what_was_handed_in(learning: Learning) -> None:
    put_parts(learning)
    run_with(learning, RIGHT)
    context = learning.open_context()
    context.opened.judge = NoTorch()
    _, exercise = context.catalog.exercise("1.2")
    (record,) = runs.readable(context.paths, "1.2")[0]
    assert has_code(context, exercise, record)
    verdict = judge_again(context, exercise, record)
    assert (verdict.verdict, verdict.parts[0].verdict) == ("not_measured", "error"), "its only check is about the other part"
    assert verdict.parts[0].says == "torch is not installed on this computer: pip install 'gpucourse[local]'"
    assert states(learning)[0] == "passed", "what was handed in before stays"


LOG = b"found it\nand left\n"


def leave_run(learning: Learning, code: int = 0) -> tuple[RunRecord, AgentNodes]:
    """Return a run of 1.1 that has ended on its node and is not collected."""
    record = learning.record(
        state="running", collected=False, started="2026-01-31T14:25:01+00:00", node_exits=[NodeExit(node="node0", code=code)]
    )
    runs.files_of(learning.context.paths, record).metrics.unlink()
    nodes = AgentNodes(learning.root / "nodes")
    metrics = json.dumps(METRICS | {"mode": "aws", "speedup": 3.0}).encode()
    make_ended_job(nodes.home("node0"), record.id, LOG, {"metrics.json": metrics})
    return record, nodes


@pytest.mark.parametrize(("code", "state", "verdict"), [(0, "succeeded", "passed"), (1, "failed", None)])
def test_finish_collects_judges_and_seals_a_run(learning: Learning, code: int, state: str, verdict: str | None) -> None:
    context = learning.open_context()
    record, nodes = leave_run(learning, code)
    with Fleet(nodes, make_nodes(1)) as fleet:
        outcome = finish(context, fleet, record)
    files = runs.files_of(context.paths, record)
    stored = runs.reread(context.paths, record)
    assert (stored.state, stored.collected, stored.verdict, outcome and outcome.verdict) == (state, True, verdict, verdict)
    metrics = read_json(files.metrics)
    assert (metrics["speedup"], metrics["mode"]) == (3.0, "local"), "a script does not decide where it ran"
    assert find_changed_files(files) == ()
    assert (context.paths.deliverables("1.1") / "metrics.json").is_file() == (code == 0)


@pytest.mark.parametrize(
    ("state", "notes"), [("failed", ["no picture flow: the run has no metrics.springs"]), ("cancelled", [])]
)
def test_draw_warns_of_a_missing_picture_unless_the_run_was_cancelled(
    learning: Learning, state: RunState, notes: list[str]
) -> None:
    manifest = MANIFEST.replace("    deliverables:", PLOT + "    deliverables:", 1)
    learning.put(f"modules/{FOLDER}/module.yaml", manifest)
    record, events = learning.record(state=state), list[Event]()
    context = learning.context.watched_by(events.append)
    _, exercise = context.catalog.exercise(record.exercise)
    _draw(context, exercise, {}, record, runs.files_of(context.paths, record))
    assert [event.text for event in events if isinstance(event, Note)] == notes
