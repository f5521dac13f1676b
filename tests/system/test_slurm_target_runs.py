"""Runs on a university's cluster through the real commands: every launcher as Slurm jobs, events in the queue, and hours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts import need
from tests.system import slurm
from tests.system.cli import Learner
from tests.system.exercising import needs_torch
from tests.university import COMPUTE_NODES, University
from tests.waiting import until

pytestmark = pytest.mark.system

HELLO = """\
import os, socket, time
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], socket.gethostname(), flush=True)
time.sleep(1.1)  # Slurm counts whole seconds, and these make the hours
"""
BATCH = (
    "#!/bin/bash\n#SBATCH --time=2\n#SBATCH --partition=gpu-short --gres=gpu:1\nmodule load pytorch/2.13 && command -v python\n"
)
LONG = """\
import os, pathlib, time
mark = pathlib.Path(os.environ["GPUCOURSE_OUT"], "begun")
is_second_start = mark.exists()
mark.touch()
print("begun", flush=True)
memory = b"1" * (600 << 20) if "TOO_MUCH" in os.environ else b""
is_second_start or time.sleep(600)
"""
ENDS = (  # words of `run`, what is typed on the cluster, the state at the end, the log, the title of the diagnosis
    (
        ("--slurm", "nodelist=gpu1"),
        ("login1 prof sbatch -Q -A prof -p high -w gpu1 --exclusive -o /dev/null --wrap 'sleep 3'",),
        "succeeded", "was put back into the queue, because a job of higher priority needed gpu1 (preemption)", "",
    ),
    (
        ("--slurm", "nodelist=gpu2", "--timeout", "1m"), (),
        "timed_out", "is TIMEOUT: it reached its time limit, and Slurm ended it", "Not finished by the time limit",
    ),
    (
        ("--slurm", "nodelist=gpu2", "--slurm", "mem=300M", "--env", "TOO_MUCH=1"), (),
        "failed", "is FAILED on gpu2", "Slurm ended it: out of memory",
    ),
    (
        ("--slurm", "nodelist=cpu2", "--slurm", "partition=cpu", "--slurm", "no-requeue=true"),
        ("adm root scontrol update nodename=cpu2 state=down reason=disk",),
        "lost", "is NODE_FAIL: a node failed while the job ran", "cpu2 failed under job {job}",
    ),
    (
        ("--slurm", "begin=now+1hour"), ("adm root scontrol hold {job}",),
        "cancelled", "(JobHeldAdmin): the administrator holds it", "",
    ),
)  # fmt: skip
SMALL = ("--no-predict", *(word for pair in ("epochs=1", "steps=5", "hidden=32", "samples=512", "batch_size=64")
                           for word in ("--set", pair)))  # fmt: skip


@pytest.fixture(scope="module")
def account(university_cluster: University, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Yield a learner with a lab of module 3 on the cluster, which also runs the jobs of module 2."""
    learner = Learner(tmp_path_factory.mktemp("account") / "workspace")
    university_cluster.introduce(learner.workspace.parent / "home")
    with learner.leaves_nothing():
        learner.types(
            "deploy", "3", "--target", "slurm", "--login", "uni", "--account", "abc123",
            "--slurm", "setup=module load pytorch/2.13", "--slurm", "python=python",
        )  # fmt: skip
        yield learner
    university_cluster.check_nothing_is_left()


def run_script(learner: Learner, folder: Path, *words: str, code: int = 0) -> str:
    """Run the script on two nodes, and return what its ranks and the command print."""
    (folder / "hello.py").write_text(HELLO)
    typed = learner.types("run", "--script", str(folder / "hello.py"), "--launcher", "python", *words, code=code)
    return typed.out + typed.err


def test_run_of_a_script_is_one_job_with_the_settings_of_the_lab(account: Learner, tmp_path: Path) -> None:
    run_script(account, tmp_path, "--nodes", "2", "--slurm", "qos=course", "--timeout", "5m")
    record = account.newest_run()
    assert (record["launcher"], record["mode"], record["world_size"]) == ("python", "slurm", 2)
    logs = sorted(path.read_text() for path in account.run_folder().glob("logs/*rank*.log"))
    assert logs == ["rank 0 of 2 gpu1\n", "rank 1 of 2 gpu2\n"]
    assert record["slurm"]["partition"] == "gpu-short"
    [job] = record["slurm"]["jobs"]
    assert job["gpu_hours"] == pytest.approx(job["ran_s"] * 2 / 3600, abs=0.002), "two nodes with one GPU each, by sacct"
    batch = (account.run_folder() / "job.sbatch").read_text()
    assert "#!/bin/bash -l\n" in batch
    assert "\nmodule load pytorch/2.13\n" in batch
    launcher_log = "".join(path.read_text() for path in account.run_folder().glob("logs/*launcher.log"))
    assert "--account=abc123 --qos=course --gres=gpu:1 --time=00:05:00 job.sbatch" in launcher_log
    [lab] = account.documents("cost")["clusters"]
    assert lab["stack"] == "03-slurm"
    assert lab["gpu_hours"] > 0


def test_run_that_may_need_too_many_gpu_hours_is_not_submitted(account: Learner, tmp_path: Path) -> None:
    runs = len(account.list_records())
    said = run_script(account, tmp_path, "--nodes", "2", "--timeout", "10m", "--max-gpu-hours", "0.3", code=2)
    assert "may need 0.33 GPU hours" in said
    said = run_script(account, tmp_path, "--nodes", "2", "--timeout", "40m", code=3)
    assert "the partition gpu-short allows jobs of at most 30 min, and --timeout asks for 40 min" in said
    assert f"gpucourse run --script {tmp_path}/hello.py --launcher python --nodes 2 --timeout 30m" in said
    said = run_script(account, tmp_path, "--slurm", "partition=gpu", code=3)
    assert "the cluster has no partition 'gpu'; it has: cpu, gpu-short, high" in said
    assert len(account.list_records()) == runs


@pytest.mark.slow
def test_mpirun_starts_the_ranks_on_the_nodes_of_the_job(account: Learner, tmp_path: Path) -> None:
    need("mpirun")
    (tmp_path / "rank.py").write_text("import os, socket\nprint(os.environ['OMPI_COMM_WORLD_RANK'], socket.gethostname())\n")
    account.types("run", "--script", str(tmp_path / "rank.py"), "--launcher", "mpi", "--nodes", "2")
    assert sorted(path.read_text() for path in account.run_folder().glob("logs/*rank*.log")) == ["0 gpu1\n", "1 gpu2\n"]


@pytest.mark.slow
def test_sweep_is_one_job_array_unless_the_cluster_refuses_it(
    account: Learner, university_cluster: University, tmp_path: Path
) -> None:
    def run_sweep() -> tuple[str, list[str]]:
        old = account.list_records()
        output = run_script(account, tmp_path, "--slurm", "partition=cpu", "--sweep", "elements=1,2,3")
        assert "3 of 3 values of elements passed" in output
        records = [path for path in account.list_records() if path not in old]
        assert [len(list(path.parent.glob("logs/*rank0.log"))) for path in records] == [1, 1, 1]
        return output, sorted(json.loads(path.read_text())["slurm"]["jobs"][0]["job"] for path in records)

    output, jobs = run_sweep()
    assert "the 3 runs of the sweep are one job array" in output
    assert jobs == [f"{jobs[0].partition('_')[0]}_{task}" for task in range(3)]
    limit = "sacctmgr -i modify user stud where account=abc123 set maxsubmit="
    university_cluster.inside("adm", f"{limit}2")
    try:
        output, jobs = run_sweep()
    finally:
        university_cluster.inside("adm", f"{limit}-1")
    assert (
        "each run is a separate job, not a task of one array: "
        "you already have the maximum number of jobs that your account or QoS allows" in output
    )
    assert [job for job in jobs if "_" in job] == []
    listing = university_cluster.inside("login1", "ls /home/stud/.gpucourse/jobs", user="stud")
    folders = re.findall(r"\d{8}-\d{6}-[a-z]+", listing)
    assert set(folders) <= {path.parent.name for path in account.list_records()}, "nothing of the array that was refused"
    output = run_script(account, tmp_path, "--timeout", "10m", "--max-gpu-hours", "0.4", "--sweep", "elements=1,2,3", code=2)
    assert "these 3 runs may need 0.50 GPU hours" in output


def test_batch_file_of_the_learner_finds_the_modules_of_the_login(account: Learner, tmp_path: Path) -> None:
    (tmp_path / "train.sbatch").write_text(BATCH)
    typed = account.types("run", "--script", str(tmp_path / "train.sbatch"))
    assert "/opt/sw/pytorch/bin/python" in typed.err
    assert account.newest_run()["slurm"]["partition"] == "gpu-short"


def test_waiting_run_says_why_and_one_cancelled_by_root_says_who(
    account: Learner, university_cluster: University, tmp_path: Path
) -> None:
    """Hold the GPUs with a job that has a higher priority, so that Slurm cannot predict when this one starts."""
    hold = "sbatch --parsable -A prof -p high -w gpu1,gpu2 --exclusive --wrap 'sleep 600'"
    held = university_cluster.inside("login1", hold, user="prof").strip().splitlines()[-1]
    try:
        until(
            lambda: "RUNNING" in university_cluster.inside("adm", f"squeue -h -j {held} -o %T"), "the job that holds the GPUs"
        )
        run_script(account, tmp_path, "--detach")
        waiting = until(lambda: " waiting " in (said := account.types("runs").out) and said, "a run that waits")
        assert "is PENDING" in waiting
        assert "running" not in waiting.splitlines()[-3]
        run = account.newest_run()
        assert run["slurm"]["nodes"] == 1, "a script runs on one node unless --nodes says more"
        assert run["state"] == "running", "only Slurm knows that it waits; the record of a run that has not ended is not judged"
        [job] = run["slurm"]["jobs"]
        university_cluster.inside("adm", f"scancel {job['job']}")
        account.types("logs", run["id"], "-f", code=None)
        [diagnosis] = account.newest_run()["diagnoses"]
        assert diagnosis["title"] == f"job {job['job']} was cancelled by the administrator (root)"
    finally:
        university_cluster.inside("adm", f"scancel {held}")


@pytest.mark.slow
def test_run_says_what_the_cluster_did_to_its_job(account: Learner, university_cluster: University, tmp_path: Path) -> None:
    """Start all runs at the same time, because Slurm's shortest time limit is a minute."""

    def find_job(run_id: str) -> str:
        rows = university_cluster.inside("adm", "squeue -h -t all -o '%i %T %Z'").splitlines()
        job = next(row.split() for row in rows if row.endswith(run_id))
        return "" if job[1] == "PENDING" and run_id != run_ids[-1] else job[0]

    def read_log(run_id: str) -> str:
        return university_cluster.inside("login1", f"cat .gpucourse/jobs/{run_id}/logs/launcher.log", user="stud")

    def read_states() -> list[str]:
        records = {run["id"]: run["state"] for run in account.documents("runs")["runs"]}
        return [records[run_id] for run_id in run_ids]

    (tmp_path / "long.py").write_text(LONG)
    run_ids = []
    for words, *_ in ENDS:
        account.types("run", "--script", str(tmp_path / "long.py"), "--launcher", "python", "--nodes", "1", "-d", *words)
        run_ids.append(account.newest_run()["id"])
    jobs = [until(lambda run_id=run_id: find_job(run_id), "the job to start") for run_id in run_ids]  # type: ignore[misc]
    begun = [f"/home/stud/.gpucourse/jobs/{run_id}/outputs/begun" for run_id in run_ids[:-1]]
    until(
        lambda: len(university_cluster.inside("login1", f"ls {' '.join(begun)}", code=None).split()) == len(begun),
        "all scripts",
    )
    for job, (_, commands, *_) in zip(jobs, ENDS, strict=True):
        for node, user, command in (line.split(maxsplit=2) for line in commands):
            university_cluster.inside(node, command.format(job=job), user=user)
    try:
        log = until(lambda: account.types("runs") and "put back" in (text := read_log(run_ids[0])) and text, "the preemption")
        assert f"gpucourse ssh 3 -- scontrol update JobId={jobs[0]} StartTime=now" in log
        held = account.documents("status")["stacks"][0]["waits"][run_ids[-1]]
        assert "(JobHeldAdmin): the administrator holds it" in held
        assert "Only the administrator can release it: ask why, or gpucourse cancel" in read_log(run_ids[-1])
        account.types("cancel", run_ids[-1])
    finally:
        university_cluster.inside("adm", "scontrol update nodename=cpu2 state=resume", code=None)
    university_cluster.inside("adm", f"scontrol update JobId={jobs[0]} StartTime=now")
    until(lambda: "running" not in read_states(), "all runs to end")
    for node in COMPUTE_NODES:  # a killed program cannot remove its files; on a real cluster, an administrator's epilog does
        university_cluster.inside(node, "rm -rf /tmp/gpucourse-*")
    assert read_states() == [state for _, _, state, _, _ in ENDS]
    for run_id, job, (_, _, _, sentence, title) in zip(run_ids, jobs, ENDS, strict=True):
        record = json.loads((account.workspace / f"runs/scripts/long.py/{run_id}/run.json").read_text())
        assert sentence in account.types("logs", run_id).out
        assert [diagnosis["title"] for diagnosis in record["diagnoses"]] == ([title.format(job=job)] if title else [])
        assert all(diagnosis["next"] for diagnosis in record["diagnoses"])
        assert record["slurm"]["jobs"][0]["restarts"] == (run_id == run_ids[0]), "a run that was requeued is one run"


@pytest.mark.slow
@needs_torch
def test_exercises_run_as_jobs_and_the_files_of_module_2_unchanged(account: Learner) -> None:
    account.types("run", "3.2", "--nodes", "2", *SMALL)
    assert set(slurm.read_verdicts(account).values()) <= {"passed", "not_measured"}
    assert "srun starts one torchrun" in (account.run_folder() / "job.sbatch").read_text()
    for exercise, name, words in (
        ("2.1", "my_job", ("--set", "size=256")),
        ("2.3", "my_multi_node", ()),
        ("2.4", "my_array", ("--set", "epochs=1", "--set", "seeds=1")),
    ):
        account.types("show", exercise)
        solution = (slurm.EXERCISES / "solutions" / f"{name}.sbatch").read_text()
        (account.workspace / f"exercises/02-slurm/{name}.sbatch").write_text(solution)
        ran = account.types("run", exercise, "--no-predict", *words)
        assert "its jobs go to gpu-short" in ran.err
        assert set(slurm.read_verdicts(account).values()) <= {"passed", "not_measured"}
    assert {row["node"] for row in account.newest_run()["slurm"]["jobs"] if row["file"] == "gather"} <= {"cpu1", "cpu2"}


@pytest.mark.slow
@needs_torch
def test_terminal_on_a_node_submits_jobs_with_the_settings_of_the_lab(account: Learner) -> None:
    """The other node has four GPUs, so that the job that waits has to ask for all that become free."""
    account.types("show", "2.2")
    solution = (slurm.EXERCISES / "solutions" / "my_release.sh").read_text()
    (account.workspace / "exercises/02-slurm/my_release.sh").write_text(solution)
    steps = [(r"bash-\S*\$ ", "python session.py\n"), ("written: ", "python held.py\n"), ("written: ", "exit\n")]
    code, screen = slurm.in_terminal(account, ["run", "2.2", "--no-predict", "--slurm", "nodelist=gpu1"], steps)
    assert code == 0, screen
    assert set(slurm.read_verdicts(account).values()) == {"passed"}
