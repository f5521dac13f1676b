"""The coach beside real runs: who falls silent is named while the run goes on, who fails first at once; nothing is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.system.cli import Learner

pytestmark = pytest.mark.system

STOPS = """\
import os, signal, time
rank = int(os.environ["RANK"])
for step in range(200):
    print("step", step, "of rank", rank, flush=True)
    time.sleep(0.05)
    if rank == 1 and step == 3:
        os.kill(os.getpid(), signal.SIGSTOP)
"""
FAILS = """\
import os, sys, time
rank = int(os.environ["RANK"])
print("begins", flush=True)
time.sleep(0.2)
if rank == 1:
    raise ValueError("a mistake of its own")
time.sleep(60)
"""


def run(lab: Learner, folder: Path, text: str, *more: str) -> tuple[str, str]:
    """Run the script on both nodes, without torch; it fails. Standard output and error."""
    (folder / "script.py").write_text(text)
    typed = lab.types("run", "--script", str(folder / "script.py"), "--launcher", "python", "--nodes", "2", *more, code=4)
    lab.check_nothing_runs()
    return typed.out, typed.err


def test_a_silent_rank_is_named_with_what_its_process_does(lab: Learner, tmp_path: Path) -> None:
    out, err = run(lab, tmp_path, STOPS, "--silence", "1s", "--timeout", "4s")
    named = next(number for number, line in enumerate(err.splitlines()) if "rank 1 on node1 has said nothing for 1 s" in line)
    assert "its process is stopped by a signal; its last line: step 3 of rank 1" in err.splitlines()[named]
    assert any("of rank 0" in line for line in err.splitlines()[named:]), "it is named while the others go on"
    assert "rank 0 on node0 has said nothing" not in err
    assert "failed with exit code" not in err, "who was ended by the time limit did not fail"
    record = lab.newest_run()
    assert [(item["rank"], item["doing"]) for item in record["silences"]] == [(1, "stopped")]
    assert [(item["symptom"], item["ranks"]) for item in record["diagnoses"]] == [("silent-rank", [1])]
    assert "[silent-rank]" in out
    assert "gpucourse logs" in record["diagnoses"][0]["next"]


def test_the_first_failure_is_told_before_the_others_are_ended(lab: Learner, tmp_path: Path) -> None:
    out, err = run(lab, tmp_path, FAILS)
    lines = err.splitlines()
    told = lines.index("! rank 1 on node1 failed with exit code 1")
    assert told < next(number for number, line in enumerate(lines) if "running script.py" in line)
    record = lab.newest_run()
    assert [(diagnosis["symptom"], diagnosis["ranks"]) for diagnosis in record["diagnoses"]] == [("script-error", [1])]
    assert "a mistake of its own" in out
    document = json.loads((lab.run_folder() / "run.json").read_text())
    assert document["diagnoses"] == record["diagnoses"]
    assert "Rank 1 raised ValueError" in lab.types("runs").out


def test_a_run_that_went_well_has_no_diagnosis(lab: Learner, tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text("print('Connection refused, address already in use: said, and not meant')\n")
    lab.types("run", "--script", str(tmp_path / "fine.py"), "--launcher", "python", "--nodes", "2")
    record = lab.newest_run()
    assert (record["state"], record["diagnoses"], record["silences"]) == ("succeeded", [], [])
    assert set(record["clock_skew_s"]) == {"node0", "node1"}
    assert all(abs(skew) < 1 for skew in record["clock_skew_s"].values())


def test_a_record_from_before_the_coach_is_still_read(lab: Learner, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("raise SystemExit(2)\n")
    lab.types("run", "--script", str(tmp_path / "old.py"), "--launcher", "python", "--nodes", "1", code=4)
    path = lab.run_folder() / "run.json"
    record = json.loads(path.read_text())
    for name in ("diagnoses", "silences", "silence_s", "clock_skew_s", "drill"):
        del record[name]
    path.write_text(json.dumps(record))
    (lab.run_folder() / "logs/node0-rank0.times").unlink(missing_ok=True)
    assert record["id"] in lab.types("runs").out
    lab.types("logs", record["id"], "--times")
