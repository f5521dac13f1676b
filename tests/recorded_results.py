"""Results of real runs, kept for tests of screens: the data for an exercise's tables, its verdict and its record.

    gpucourse run 3 --all && python -m tests.recorded_results ~/gpucourse 3.2

writes `tests/data/results/3.2.json` from the newest good run of 3.2 in that workspace (of every exercise, if none is named).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpucourse.grading.values import Unreadable, read
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import NodeExit, RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.workspace.paths import WorkspacePaths
from tests.course import CATALOG

FOLDER = Path(__file__).parent / "data" / "results"
MOST_ROWS = 40
EXERCISES = [exercise for module in CATALOG.modules for exercise in module.exercises]


def read_result(exercise: Exercise) -> tuple[RunRecord, dict[str, Any], ExerciseVerdict]:
    """Return the record, the metrics and the verdict of the stored run. Raises FileNotFoundError if there is none."""
    document = json.loads((FOLDER / f"{exercise.id}.json").read_text(encoding="utf-8"))
    verdict = msgspec.convert(document["verdict"], ExerciseVerdict)
    return msgspec.convert(document["record"], RunRecord), document["metrics"], verdict


def write_result(workspace: Path, exercise: Exercise) -> bool:
    """Store the newest good run of an exercise. Return whether there is one."""
    for folder in sorted(WorkspacePaths(workspace).runs.joinpath(exercise.id).glob("*"), reverse=True):
        if not (folder / "verdict.json").is_file():
            continue
        record = msgspec.json.decode((folder / "run.json").read_bytes(), type=RunRecord)
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        document = {
            "record": _shorten_record(record),
            "metrics": _cut(exercise, metrics),
            "verdict": json.loads((folder / "verdict.json").read_text(encoding="utf-8")),
        }
        text = json.dumps(msgspec.to_builtins(document), ensure_ascii=False, separators=(",", ":"))
        (FOLDER / f"{exercise.id}.json").write_text(text.replace("},{", "},\n{") + "\n", encoding="utf-8")
        return True
    return False


def _shorten_record(record: RunRecord) -> RunRecord:
    return RunRecord(
        id=record.id, exercise=record.exercise, module=record.module, stack=record.stack, mode=record.mode,
        launcher=record.launcher, state=record.state, created=record.created, nodes=record.nodes, world_size=record.world_size,
        restarts=record.restarts, max_restarts=record.max_restarts,
        node_exits=[NodeExit(node=end.node, code=end.code, seconds=end.seconds) for end in record.node_exits], collected=True,
        verdict=record.verdict, slurm=record.slurm,
    )  # fmt: skip


def _cut(exercise: Exercise, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return only those metrics that the exercise's tables read."""
    contents: dict[str, Any] = {}
    for table in exercise.tables:
        try:
            rows = read(table.rows, {"metrics": metrics})
        except Unreadable:
            continue
        if not isinstance(rows, list):
            continue
        keys = [column.key for column in table.columns]
        *path, last = table.rows.removeprefix("metrics.").split(".")
        place = contents
        for name in path:
            place = place.setdefault(name, {})
        old_rows = place.get(last, [{} for _ in rows[:MOST_ROWS]])
        place[last] = [old | {key: row.get(key) for key in keys} for old, row in zip(old_rows, rows, strict=False)]
    return contents


def main(arguments: Sequence[str]) -> int:
    """Write the requested results. Return 1 if a run is missing."""
    workspace, *numbers = arguments
    exercises = [exercise for exercise in EXERCISES if not numbers or exercise.id in numbers]
    missing = [exercise.id for exercise in exercises if not write_result(Path(workspace).expanduser(), exercise)]
    sys.stdout.write(f"no good run of: {', '.join(missing)}\n" if missing else "")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
