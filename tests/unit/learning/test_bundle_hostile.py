"""Bundles of a hostile sender: names, counts, sizes and depths that no honest bundle has."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpucourse.learning import bundle as bundles
from tests.learning import METRICS, Learning

RUN = "runs/1.1/20260101-000000-otter"
RECORD: dict[str, Any] = {
    "id": "20260101-000000-otter", "exercise": "1.1", "module": "1", "stack": "01-local", "mode": "local", "launcher": "python",
    "state": "succeeded", "created": "2026-01-01T00:00:00+00:00", "nodes": ["node0"], "world_size": 1, "verdict": "passed",
}  # fmt: skip
CARD: dict[str, Any] = {
    "version": 1, "by": "Mallory", "made": "2026-01-01", "workspace": "abc", "gpucourse": "1",
    "grade": {"parts": [], "earned": 0, "points": 0, "waiting": 0, "bonus": 0, "bonus_points": 0, "changed": {}},
}  # fmt: skip


def bundle(path: Path, files: dict[str, bytes], card: Callable[[dict[str, Any]], Any] = lambda card: card) -> Path:
    """Return a bundle with these files and a card that lists them all; the function `card` changes the card."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("bundle.json", json.dumps(card({**CARD, "files": digests})))
        for name, data in files.items():
            target.writestr(name, data)
    return path


def run_files(record: dict[str, Any] | None = None, **files: bytes) -> dict[str, bytes]:
    return {f"{RUN}/run.json": json.dumps({**RECORD, **(record or {})}).encode()} | {
        f"{RUN}/{name.replace('_', '.')}": data for name, data in files.items()
    }


NAMES = ["/dev/zero", "../secret.txt", "a\x1b[31m", "", "x" * 5000]


@pytest.mark.parametrize("name", NAMES)
def test_open_of_a_card_that_names_files_elsewhere_reads_none(learning: Learning, name: str) -> None:
    (learning.root / "secret.txt").write_text("secret")
    path = bundle(learning.root / "evil.zip", run_files(), lambda card: {**card, "files": {**card["files"], name: "0" * 64}})
    result = learning.types("grade", "--open", str(path), code=5)
    assert "files were changed" in result.err
    assert "\x1b" not in result.out + result.err


@pytest.mark.parametrize("name", NAMES)
def test_open_of_a_seal_that_names_files_elsewhere_reads_none(learning: Learning, name: str) -> None:
    (learning.root / "secret.txt").write_text("secret")
    files = run_files(metrics_json=b"{}", plan_json=b"{}", hashes_json=json.dumps({"sha256": {name: "0" * 64}}).encode())
    result = learning.types("grade", "--open", str(bundle(learning.root / "evil.zip", files)), code=5)
    assert "Changed after the run" in result.out
    assert "\x1b" not in result.out + result.err


def test_open_of_a_record_that_leads_elsewhere_is_damaged(learning: Learning) -> None:
    run = learning.record()
    foreign_id = f"../../../../../..{learning.folder(run)}"
    for changes in ({"id": foreign_id}, {"exercise": foreign_id}, {"id": "20260101-000001-otter"}, {"nodes": ["../.."]}):
        path = bundle(learning.root / "evil.zip", run_files(changes))
        grade = learning.types("grade", "--open", str(path), "--json").document["bundles"][0]["grade"]
        assert grade["earned"] == 0
        assert "is damaged" in json.dumps(grade)


def test_open_of_a_bundle_of_a_newer_version_names_it(learning: Learning) -> None:
    path = bundle(learning.root / "later.zip", run_files(), lambda card: {**card, "version": 99})
    result = learning.types("grade", "--open", str(path), code=2)
    assert f"{path} was made by a newer gpucourse" in " ".join(result.err.split())
    assert "gpucourse-bundle-" not in result.out + result.err


WRONG = {
    "deep": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "digits": b"[" + b"1" * 5000 + b"]",
    "float": b'{"a": 1e999}',
    "surrogate": b'{"a": "\\ud800"}',
    "null": b"null",
    "empty": b"",
    "bytes": b"\xff",
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("run.json", kind) for kind in WRONG]
    + [(name, "deep") for name in ("bundle.json", "metrics.json", "plan.json", "hashes.json", "quiz.json")],
)
def test_open_of_invalid_json_blames_the_bundle_and_the_next_command_works(learning: Learning, name: str, kind: str) -> None:
    data = WRONG[kind]
    place = {"bundle.json": name, "quiz.json": ".gpucourse/quiz.json"}.get(name, f"{RUN}/{name}")
    files = run_files(metrics_json=b"{}", plan_json=b"{}", hashes_json=b"{}")
    path = bundle(learning.root / "evil.zip", files if name == "bundle.json" else {**files, place: data})
    if name == "bundle.json":
        with zipfile.ZipFile(path, "w") as target:
            target.writestr(name, data)
    result = learning.types("grade", "--open", str(path), code=None)
    assert result.code in {0, 2, 5}, result.err
    learning.types("grade")


def test_open_of_a_card_with_a_long_word_quotes_little_of_it(learning: Learning) -> None:
    part = {"module": "1", "title": "", "counts": "", "here": True, "points": 1, "earned": 1, "waiting": 0}
    row = {"id": "a", "title": "a", "points": 1, "earned": 1, "level": "x" * 200_000}
    grade = {**CARD["grade"], "parts": [{**part, "rows": [row]}]}
    path = bundle(learning.root / "evil.zip", run_files(), lambda card: {**card, "grade": grade})
    result = learning.types("grade", "--open", str(path), code=2)
    assert "bundle.json is damaged" in result.err
    assert len(result.err) < 2000


def test_open_of_a_bundle_with_a_damaged_identity_blames_the_bundle(learning: Learning) -> None:
    path = bundle(learning.root / "evil.zip", {**run_files(), ".gpucourse/workspace.json": b"{}"})
    result = learning.types("grade", "--open", str(path), code=2)
    assert "is not a complete bundle: it does not say which workspace made it" in " ".join(result.err.split())
    assert "gpucourse-bundle-" not in result.err


def test_open_of_a_bundle_with_a_newer_file_in_it_names_the_bundle(learning: Learning) -> None:
    path = bundle(learning.root / "later.zip", {**run_files(), ".gpucourse/quiz.json": b'{"version": 1000000000000}'})
    result = learning.types("grade", "--open", str(path), code=2)
    assert "later.zip contains files of a newer gpucourse" in " ".join(result.err.split())
    assert "gpucourse-bundle-" not in result.err


def test_bundle_of_too_many_files_is_neither_made_nor_opened(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = learning.folder(learning.record()) / "outputs" / "node0"
    outputs.mkdir(parents=True)
    for number in range(20):
        (outputs / str(number)).touch()
    archive = str(learning.hand_in())
    monkeypatch.setattr(bundles, "LIMITS", replace(bundles.LIMITS, members=20))
    result = learning.types("grade", "--bundle", archive, code=2)
    assert "a bundle contains at most 19 files" in result.err
    assert str(outputs) in result.err
    assert "the limit is 20" in learning.types("grade", "--open", archive, code=2).err


HUGE, NAMES_OF_NODES = 10**12, [f"node{number}" for number in range(200_000)]
END = {"node": "node0", "rank": 0, "code": 0, "at": 1.0}
LINES = b"litres 1.5, busy 78 %\n" * 200_000
CHANGED_RECORDS: dict[str, dict[str, Any]] = {
    "digits": {"world_size": 10**30},
    "nodes": {"nodes": NAMES_OF_NODES},
    "group": {"launcher": "torchrun", "world_size": 2, "rank_exits": [{**END, "group": HUGE}]},
    "many ends": {"launcher": "torchrun", "world_size": 2, "rank_exits": [{**END, "rank": 7, "group": 1}] * 100_000},
    "slurm": {"launcher": "slurm", "slurm": {"partition": "gpu", "nodes": HUGE, "gpus": HUGE}},
    "prediction": {"prediction": {"id": "litres", "answer": "9" * 200_000}},
}
CHANGED_FILES: dict[str, dict[str, bytes]] = {
    "metrics": {f"{RUN}/metrics.json": json.dumps({**METRICS, "springs": METRICS["springs"] * 20_000}).encode()},
    "log": {f"{RUN}/logs/node0-rank0.log": LINES},
    "answers": {"deliverables/1.1/answers.yaml": b"answers: {speedup: 1" + b"0" * 4000 + b"}\n"},
    "parts": {"deliverables/1.1/yours.json": json.dumps({"parts": {str(number): {} for number in range(100_000)}}).encode()},
}


@pytest.mark.slow
@pytest.mark.parametrize("change", [*CHANGED_RECORDS, *CHANGED_FILES])
def test_open_of_a_bundle_with_one_huge_value_needs_little_memory_and_time(learning: Learning, change: str) -> None:
    files = run_files(CHANGED_RECORDS.get(change), metrics_json=json.dumps(METRICS).encode(), plan_json=b"{}")
    files |= {f"{RUN}/logs/node0-rank0.log": LINES[:44], **CHANGED_FILES.get(change, {})}
    path = bundle(learning.root / "evil.zip", files)
    limits = "ulimit -v 1000000 && ulimit -t 60 && exec"
    opening = subprocess.run(
        ["sh", "-c", f'{limits} "$@"', "sh", sys.executable, "-m", "gpucourse", "grade", "--open", path], check=False
    )
    assert opening.returncode in {0, 2, 5}
