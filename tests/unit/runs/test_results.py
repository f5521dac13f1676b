from __future__ import annotations

import json

import pytest

from gpucourse.errors import MissingError
from gpucourse.runs.results import material, read_handed_in_verdict, read_stored_verdict
from tests.learning import MANIFEST, METRICS, Learning
from tests.unit.learning.test_check_own_scripts import record_own
from tests.unit.learning.test_evidence_own_scripts import book_an_earlier_run
from tests.unit.model.test_record import ends


def test_read_stored_verdict_has_one_on_a_script_of_the_learner_that_is_not_handed_in(learning: Learning) -> None:
    assert read_handed_in_verdict(learning.context.paths, "1.1") is None
    earlier = book_an_earlier_run(learning)
    assert read_stored_verdict(learning.context.paths, "1.1").run == earlier.id  # type: ignore[union-attr]
    assert read_handed_in_verdict(learning.context.paths, "1.1") is None
    good_run = learning.record()
    assert read_handed_in_verdict(learning.context.paths, "1.1").run == good_run.id  # type: ignore[union-attr]


def test_material_of_a_damaged_file_names_the_copy_of_the_run(learning: Learning) -> None:
    record = learning.record()
    assert material(learning.context.paths, record)["metrics"]["speedup"] == 1.9
    (learning.folder(record) / "metrics.json").write_text("{")
    with pytest.raises(MissingError) as caught:
        material(learning.context.paths, record)
    assert "the run's own copy may be intact" in caught.value.hint


def test_verdict_on_an_exercise_about_all_ranks_fails_after_split_groups(learning: Learning) -> None:
    manifest = learning.course / "modules/01-rivers/module.yaml"
    check = "      - {id: all, title: All, value: count(metrics.springs), equals: plan.world_size, hint: Look.}\n"
    manifest.write_text(manifest.read_text().replace("    checks:\n", f"    checks:\n{check}", 1))
    assert check in MANIFEST.replace("    checks:\n", f"    checks:\n{check}", 1)
    metrics = {**METRICS, "springs": METRICS["springs"][:2]}
    good_run = learning.record(metrics=metrics, world_size=2, launcher="torchrun", rank_exits=ends(2, 2))
    assert good_run.verdict == "passed"
    split_run = learning.record(metrics=metrics, world_size=2, launcher="torchrun", rank_exits=ends(1, 1))
    assert split_run.verdict == "failed"
    output = learning.types("check", "1.1", "--run", split_run.id, code=5).out
    assert "All ranks are in one process group: 2 ranks were planned as one process group" in " ".join(output.split())
    own_run = learning.record(own_script="/home/me/train.py", world_size=2, launcher="torchrun", rank_exits=ends(0, 0))
    assert "torch made no process group" in learning.types("show", "train.py", "--run", own_run.id).out
    document = learning.types("show", "train.py", "--run", own_run.id, "--json").document
    assert document["run"]["group_sizes"] == [0, 0]
    assert document["run"]["warnings"] == [own_run.split_world]
    assert json.loads((learning.folder(own_run) / "run.json").read_text())["rank_exits"][0]["group"] == 0


def test_judge_own_checks_of_a_damaged_record_names_the_check(learning: Learning) -> None:
    run = record_own(learning, steps_per_s=140.0)
    path = learning.workspace / "runs/scripts/train.py" / run / "run.json"
    stored = json.loads(path.read_text())
    stored["checks"][0].pop("hint")
    path.write_text(json.dumps(stored))
    assert "checks.0.hint: is missing" in " ".join(learning.types("check", "train.py", code=5).out.split())
