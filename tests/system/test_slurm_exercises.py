"""Exercises on a real Slurm through the real commands, as a learner runs them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.system import slurm
from tests.system.cli import Learner
from tests.system.exercising import needs_torch
from tests.system.slurm import read_verdicts
from tests.waiting import until

pytestmark = [pytest.mark.system, pytest.mark.slow, needs_torch]  # test_slurm_runs.py has the others


def metrics(cluster: Learner) -> dict[str, Any]:
    return dict(json.loads((cluster.run_folder() / "metrics.json").read_text()))


def have_all_passed(cluster: Learner) -> bool:
    """Return whether every check passed."""
    return set(read_verdicts(cluster).values()) == {"passed"}


def write(cluster: Learner, name: str, *changes: tuple[str, str]) -> None:
    """Write the course's solution into the learner's part, with changes."""
    text = (slurm.EXERCISES / "solutions" / name).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (cluster.workspace / "exercises/02-slurm" / name).write_text(text)


def deliver(cluster: Learner, name: str) -> None:
    """Restore the part as it is delivered."""
    (cluster.workspace / "exercises/02-slurm" / name).write_bytes((slurm.EXERCISES / name).read_bytes())


def part(cluster: Learner) -> dict[str, Any]:
    """Return the verdict on the learner's part after the newest run."""
    return dict(json.loads((cluster.run_folder() / "verdict.json").read_text())["parts"][0])


def test_terminal_on_a_node_measures_the_session_and_keeps_a_transcript(cluster: Learner) -> None:
    code, screen = slurm.in_terminal(
        cluster,
        ["run", "2.2", "--no-predict"],
        [
            (r"@\S*node[0-9]", "echo GPUS=[$CUDA_VISIBLE_DEVICES]; stty size; hostname\n"),
            (r"GPUS=\[0\]", "OMP_NUM_THREADS=1 python session.py | tail -1\n"),
            (r"written: ", "squeue -h -o '%T %b'; false; exit\n"),
        ],
    )
    assert code == 0, screen
    assert "$ srun --partition=gpu --gres=gpu:1 --pty bash" in screen
    session = metrics(cluster)["session"][0]
    assert (session["gpus_held"], session["gpus_after"]) == (1, 0)
    open_checks = {name for name, verdict in read_verdicts(cluster).items() if verdict != "passed"}
    assert open_checks == {"someone-waits", "given-back", "right-job"}, "python held.py was not typed"
    transcript = (cluster.run_folder() / "transcript.txt").read_text()
    assert "python session.py" in transcript
    assert "256" in transcript
    assert "\x1b" not in transcript
    until(lambda: not slurm.queue(cluster), "the end of its jobs")  # a job may be completing
    assert (cluster.workspace / "deliverables/2.2/transcript.txt").is_file()


def test_array_of_the_learner_keeps_its_limit_and_is_gathered(cluster: Learner) -> None:
    write(cluster, "my_array.sbatch")
    ran = cluster.types("run", "2.4", "--set", "epochs=1", "--set", "seeds=1")
    assert "--dependency=afterok:" in ran.err
    assert have_all_passed(cluster)
    assert [row["value"] for row in metrics(cluster)["rows"]] == [0.0005, 0.001, 0.002, 0.004]
    assert metrics(cluster)["slurm"]["most_at_once"] <= 2
    best = min(metrics(cluster)["rows"], key=lambda row: row["final_loss"])
    assert metrics(cluster)["best_value"] == best["value"]
    for name in ("sweep.png", "metrics.json", "my_array.sbatch"):
        assert (cluster.workspace / "deliverables/2.4" / name).is_file(), name
    assert part(cluster)["verdict"] == "passed"
    deliver(cluster, "my_array.sbatch")


def test_training_that_loses_a_worker_restarts(cluster: Learner) -> None:
    ran = cluster.types("run", "6.5", "--launcher", "slurm", "--set", "crashes=1", timeout=300)
    assert "with 1 restart" in ran.out
    record = json.loads((cluster.run_folder() / "run.json").read_text())
    assert (record["state"], record["restarts"], record["max_restarts"]) == ("succeeded", 1, 3)
    ends = [(end["rank"], end["restart"], end["code"]) for end in record["rank_exits"]]
    assert ends == [(0, 0, 1), (0, 1, 0), (1, 0, 9), (1, 1, 0)]
    assert record["first_failure"] is None
    (log,) = cluster.run_folder().glob("logs/*-rank1.log")
    assert "exit code 9, without a message to others\n--- restart 1 ---\n" in log.read_text()
    assert [life["ended"] for life in metrics(cluster)["lives"]] == ["crashed", "finished"]
    assert "failed" not in read_verdicts(cluster).values(), "its losses are those of an undisturbed training"
    assert metrics(cluster)["your_lives"] is None
