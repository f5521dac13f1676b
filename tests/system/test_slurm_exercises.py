"""Module 2 through the real commands, on a real Slurm: every exercise as a learner runs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.parts import need
from tests.system import slurm
from tests.system.cli import Learner
from tests.system.exercising import needs_torch

pytestmark = [pytest.mark.system, needs_torch]
SMALL = [word for value in ("hidden=64", "samples=512", "batch_size=64", "steps=10", "epochs=2") for word in ("--set", value)]
EXERCISES = Path(__file__).parent.parent.parent / "exercises" / "02-slurm"


def metrics(cluster: Learner) -> dict[str, Any]:
    return dict(json.loads((cluster.run_folder() / "metrics.json").read_text()))


def verdicts(cluster: Learner) -> dict[str, str]:
    return {
        check["id"]: check["verdict"] for check in json.loads((cluster.run_folder() / "verdict.json").read_text())["checks"]
    }


def have_all_passed(cluster: Learner, *, but: tuple[str, ...] = ()) -> bool:
    """Whether every check passed but these, which are about the learner's part and wait for it."""
    words = verdicts(cluster)
    return all(words[name] == "not_measured" for name in but) and {words[name] for name in words if name not in but} == {
        "passed"
    }


def write(cluster: Learner, name: str, *changes: tuple[str, str]) -> None:
    """The course's solution as the learner's part, with changes."""
    text = (EXERCISES / "solutions" / name).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (cluster.workspace / "exercises/02-slurm" / name).write_text(text)


def deliver(cluster: Learner, name: str) -> None:
    """The part as it is delivered."""
    (cluster.workspace / "exercises/02-slurm" / name).write_bytes((EXERCISES / name).read_bytes())


def part(cluster: Learner) -> dict[str, Any]:
    """How the learner's part was judged after the newest run."""
    return dict(json.loads((cluster.run_folder() / "verdict.json").read_text())["parts"][0])


@pytest.mark.slow
def test_one_job(cluster: Learner) -> None:
    ran = cluster.types("run", "2.1", "--set", "seconds=0.5")
    assert "is RUNNING on node" in ran.err
    assert "is COMPLETED on node" in ran.err
    assert "(CUDA_VISIBLE_DEVICES)" in ran.err
    assert verdicts(cluster) == {
        "all-submitted": "passed", "own-gpu": "passed", "own-files": "not_measured", "queue-picture": "not_measured",
        "one-cancelled": "not_measured",
    }  # fmt: skip
    assert (cluster.run_folder() / "job.sbatch").read_text().startswith("#!/bin/bash\n")
    assert next(log.name for log in sorted((cluster.run_folder() / "logs").glob("*.log"))).startswith("node0-launcher")


def test_five_jobs_the_queue_and_one_cancelled(cluster: Learner) -> None:
    ran = cluster.types("run", "2.1", "--set", "jobs=5", "--set", "seconds=0.5")
    assert have_all_passed(cluster, but=("own-files",))
    picture = next(cluster.run_folder().glob("outputs/*/squeue.txt")).read_text()
    assert picture.startswith("$ squeue -u ")
    assert "(Resources)" in picture
    assert "(Priority)" in picture
    assert picture.splitlines()[1] in ran.err  # the picture is on the screen as it was
    assert "scancel" in ran.err
    documents = metrics(cluster)["slurm"]
    assert [job["state"] for job in documents["jobs"]] == ["COMPLETED"] * 4 + ["CANCELLED"]
    assert len({job["node"] for job in documents["jobs"][:3]}) == 3
    assert (cluster.workspace / "deliverables/2.1").is_dir()
    assert list((cluster.workspace / "deliverables/2.1").rglob("squeue.txt"))


def test_a_terminal_on_a_node(cluster: Learner) -> None:
    code, shown = slurm.in_terminal(
        cluster,
        ["run", "2.2", "--no-predict"],
        [
            (r"@\S*node[0-9]", "echo GPUS=[$CUDA_VISIBLE_DEVICES]; stty size; hostname\n"),
            (r"GPUS=\[0\]", "OMP_NUM_THREADS=1 python session.py | tail -1\n"),
            (r"written: ", "squeue -h -o '%T %b'; false; exit\n"),
        ],
    )
    assert code == 0, shown
    assert "$ srun --partition=gpu --gres=gpu:1 --pty bash" in shown
    session = metrics(cluster)["session"][0]
    assert (session["gpus_held"], session["gpus_after"]) == (1, 0)
    assert set(verdicts(cluster).values()) == {"passed"}
    transcript = (cluster.run_folder() / "transcript.txt").read_text()
    assert "python session.py" in transcript
    assert "256" in transcript
    assert "\x1b" not in transcript
    assert slurm.queue(cluster) == []
    assert (cluster.workspace / "deliverables/2.2/transcript.txt").is_file()


@pytest.mark.slow
def test_a_terminal_that_is_closed_gives_the_gpu_back_and_counts(cluster: Learner) -> None:
    asks = "echo GPUS=[$CUDA_VISIBLE_DEVICES]\n"
    slurm.in_terminal(cluster, ["run", "2.2", "--no-predict"], [(r"@\S*node[0-9]", asks)], closed_at=r"GPUS=\[0\]")
    assert slurm.queue(cluster) == []
    assert cluster.newest_run()["state"] == "succeeded"
    assert verdicts(cluster)["free-again"] == "passed"
    assert "GPUS=[0]" in (cluster.run_folder() / "transcript.txt").read_text()


def test_a_terminal_needs_a_terminal(cluster: Learner) -> None:
    assert "in your own terminal" in cluster.types("run", "2.2", code=2).err
    assert "cannot run detached" in cluster.types("run", "2.2", "--detach", code=2).err
    assert "srun --partition=gpu --gres=gpu:1 --pty bash" in cluster.types("run", "2.2", "--dry-run").out


@pytest.mark.parametrize("nodes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_machines(cluster: Learner, nodes: int) -> None:
    ran = cluster.types("run", "2.3", "--nodes", str(nodes))
    documents = metrics(cluster)
    assert have_all_passed(cluster, but=("your-machines", "your-logs"))
    assert [row["procid"] for row in documents["ranks"]] == list(range(nodes))
    assert len({row["machine"] for row in documents["ranks"]}) == nodes
    assert documents["expected_sum"] == nodes * (nodes + 1) / 2
    logs = {log.name for log in (cluster.run_folder() / "logs").glob("*-rank*.log")}
    assert len(logs) == nodes  # the output of each process, under the name of its node
    assert len({name.partition("-rank")[0] for name in logs}) == nodes
    assert f"1 job on {nodes} nodes" in ran.out


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        pytest.param((), [0.001, 0.002, 0.003, 0.004], id="as it comes", marks=pytest.mark.slow),
        pytest.param(("--set", "values=0.001,0.004"), [0.001, 0.004], id="of one's own"),
    ],
)
def test_an_array_over_learning_rates(cluster: Learner, settings: tuple[str, ...], values: list[float]) -> None:
    ran = cluster.types("run", "2.4", "--set", "epochs=1", "--set", "seeds=1", *settings)
    assert "--dependency=afterok:" in ran.err
    assert have_all_passed(cluster, but=("two-at-once",))
    documents = metrics(cluster)
    assert [row["value"] for row in documents["rows"]] == values
    assert documents["best_value"] == min(documents["rows"], key=lambda row: row["final_loss"])["value"]
    assert len(documents["slurm"]["jobs"]) == len(values) + 1
    for name in ("sweep.png", "metrics.json", "array.sbatch"):
        assert (cluster.workspace / "deliverables/2.4" / name).is_file(), name


@pytest.mark.slow
def test_an_array_over_batch_sizes_one_at_a_time(cluster: Learner) -> None:
    values = "64,128"
    cluster.types(
        "run", "2.4", "--set", "epochs=1", "--set", "sweep=batch_size", "--set", f"values={values}", "--set", "at_once=1"
    )
    assert [row["steps"] for row in metrics(cluster)["rows"]] == [64, 32]
    assert "#SBATCH --array=0-1%1" in (cluster.run_folder() / "array.sbatch").read_text()


def test_a_batch_file_of_the_learner_is_read_first_then_submitted_as_it_is(cluster: Learner) -> None:
    known = cluster.newest_run()["id"]
    write(cluster, "my_job.sbatch", ("#SBATCH --gres=gpu:1\n", ""))
    assert "my_job.sbatch was not submitted: your file asks for no GPU" in cluster.types("run", "2.1", code=5).err
    assert cluster.newest_run()["id"] == known  # nothing was submitted
    write(cluster, "my_job.sbatch", ('"$@"', '"$@"  # a line of the learner'))
    ran = cluster.types("run", "2.1", "--set", "seconds=0.2")
    assert "sbatch --parsable my_job.sbatch --seconds=0.2" in ran.err
    assert verdicts(cluster)["own-files"] == "passed"
    assert part(cluster)["verdict"] == "passed"
    assert "a line of the learner" in (cluster.workspace / "deliverables/2.1/my_job.sbatch").read_text()
    deliver(cluster, "my_job.sbatch")


@pytest.mark.slow
def test_a_batch_file_for_two_machines_runs_on_three_where_that_is_typed(cluster: Learner) -> None:
    write(cluster, "my_multi_node.sbatch")
    ran = cluster.types("run", "2.3", "--nodes", "3")
    assert "sbatch --parsable --nodes=3 my_multi_node.sbatch" in ran.err
    assert have_all_passed(cluster)
    assert part(cluster)["verdict"] == "passed"
    deliver(cluster, "my_multi_node.sbatch")


@pytest.mark.slow
def test_an_array_of_the_learner_keeps_its_limit(cluster: Learner) -> None:
    write(cluster, "my_array.sbatch")
    cluster.types("run", "2.4", "--set", "epochs=1", "--set", "seeds=1")
    assert have_all_passed(cluster)
    assert [row["value"] for row in metrics(cluster)["rows"]] == [0.0005, 0.001, 0.002, 0.004]
    assert metrics(cluster)["slurm"]["most_at_once"] <= 2
    assert part(cluster)["verdict"] == "passed"
    deliver(cluster, "my_array.sbatch")


@pytest.mark.slow
def test_a_training_of_module_3_under_slurm(cluster: Learner) -> None:
    ran = cluster.types("run", "3.2", "--launcher", "slurm", "--nodes", "2", *SMALL)
    assert set(verdicts(cluster).values()) <= {"passed", "not_measured"}
    assert "by slurm in the partition gpu" in ran.out
    assert len({log.name.partition("-rank")[0] for log in (cluster.run_folder() / "logs").glob("*-rank*.log")}) == 2


@pytest.mark.slow
def test_a_training_that_loses_a_worker_begins_again_under_slurm(cluster: Learner) -> None:
    ran = cluster.types("run", "6.5", "--launcher", "slurm", timeout=300)
    assert "with 1 restart" in ran.out
    record = json.loads((cluster.run_folder() / "run.json").read_text())
    assert (record["state"], record["restarts"], record["max_restarts"]) == ("succeeded", 1, 2)
    ends = [(end["rank"], end["restart"], end["code"]) for end in record["rank_exits"]]
    assert ends == [(0, 0, 1), (0, 1, 0), (1, 0, 9), (1, 1, 0)]
    assert record["first_failure"] is None
    (log,) = cluster.run_folder().glob("logs/*-rank1.log")
    assert "exit code 9, without a message to others\n--- restart 1 ---\n" in log.read_text()
    assert [life["ended"] for life in metrics(cluster)["lives"]] == ["crashed", "finished"]


def test_a_cluster_that_someone_else_runs(cluster: Learner, tmp_path: Path) -> None:
    there = slurm.head(cluster)
    guest = Learner(tmp_path / "workspace")
    guest.workspace.mkdir()
    settings = f"node_python: {there['python']}\nshared_folder: /shared\n"
    (guest.workspace / "gpucourse.yaml").write_text(settings, encoding="utf-8")
    public = tmp_path / "host.pub"
    public.write_text(f"{there['host_key']}\n", encoding="utf-8")
    said = subprocess.run([need("ssh-keygen"), "-lf", str(public)], capture_output=True, text=True, check=True).stdout
    own = slurm.script(tmp_path, "import os\nprint('partition', os.environ['SLURM_JOB_PARTITION'], flush=True)\n")
    look = "ls -A ~ /etc/slurm /shared /shared/gpucourse-*/.gpucourse/jobs"
    before = slurm.on_head(cluster, look)
    key = str(cluster.workspace / ".gpucourse/keys/id_ed25519")
    machine = f"{there['user']}@{there['address']}:{there['port']}"
    guest.types("deploy", "2", "--target", "hosts", "--hosts", machine, "--key", key, "--trust", said.split()[1])
    ran = guest.types("run", "--launcher", "slurm", "--nodes", "2", "--script", own)
    assert "partition gpu" in ran.err
    assert guest.newest_run()["mode"] == "hosts"
    receipt = guest.documents("destroy", "--all", "--yes")["receipts"][0]
    assert receipt["leftovers"] == []
    assert set(slurm.on_head(cluster, look).splitlines()) - set(before.splitlines()) <= {".gpucourse"}
    assert slurm.queue(cluster) == []
