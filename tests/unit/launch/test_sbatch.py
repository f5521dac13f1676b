"""The files for sbatch, compared word for word, and their lines as a shell runs them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.launch.launcher import ClusterFacts, ClusterSite, WrittenBatch, find_launcher
from gpucourse.launch.sbatch import SbatchJob, render, render_array, render_session, time_limit
from gpucourse.model.plan import LaunchPlan
from tests.unit.launch.test_slurm import ELASTIC, ONE, SPREAD, batch_of, head, make_plan, request, text_of
from tests.waiting import STUCK_S, until

GOLDEN = Path(__file__).parents[2] / "data" / "slurm" / "rendered" / "spread.sbatch"
RANK = 'echo "${TMPDIR%??????}"; touch "$TMPDIR/file"; exit 7'


def test_render_writes_the_golden_file_word_for_word() -> None:
    text = text_of(SPREAD)
    if os.environ.get("REWRITE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("plan", [ONE, SPREAD, ELASTIC], ids=["job", "spread", "elastic"])
def test_render_writes_good_shell(plan: LaunchPlan, tmp_path: Path) -> None:
    file = tmp_path / "job.sbatch"
    file.write_text(text_of(plan), encoding="utf-8")
    assert subprocess.run(["bash", "-n", str(file)], check=False).returncode == 0
    if linter := shutil.which("shellcheck"):
        assert subprocess.run([linter, str(file)], check=False).returncode == 0


def test_render_passes_arguments_to_the_script_as_they_are() -> None:
    last = text_of(SPREAD).rstrip("\n").rpartition("' bash ")[2]
    output = subprocess.run(["bash", "-c", f"printf '%s\\n' {last}"], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "--name=it's $HOME"


def test_render_array_starts_the_file_of_each_task_in_the_folder_of_its_run(tmp_path: Path) -> None:
    jobs = [SbatchJob(title="t", name="1.1", partition="gpu", array=str(task), time_s=60, command=("true",)) for task in (0, 1)]
    text = render_array([render(job) for job in jobs])
    assert "#SBATCH --array=0-1\n" in text
    assert "#SBATCH --partition=gpu\n" in text
    (tmp_path / "tasks").mkdir()
    for task in ("0", "1"):
        (tmp_path / f"run{task}").mkdir()
        (tmp_path / "tasks" / task).symlink_to(f"../run{task}")
        (tmp_path / f"run{task}" / "job.sbatch").write_text('echo "$SLURM_SUBMIT_DIR" > ran\n')
    variables = {"PATH": os.environ["PATH"], "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_ARRAY_TASK_ID": "1"}
    subprocess.run(["bash", "-c", text], env=variables, check=True)
    assert (tmp_path / "run1/ran").read_text() == f"{tmp_path}/run1\n"
    assert not (tmp_path / "run0/ran").exists()
    assert render_array([render(jobs[0]), render(replace(jobs[1], nodes=2))]) == "", "they ask for different things"


@pytest.mark.parametrize("tasks", [1, 2], ids=["job", "spread"])
def test_render_removes_temporary_files_at_the_end(tmp_path: Path, tasks: int) -> None:
    job = SbatchJob(
        title="t", name="1.1", partition="", tasks=tasks, time_s=60, removes_temporary=True, command=("sh", "-c", RANK)
    )
    text = render(job).replace("srun --export", "bash -c 'shift 4; exec \"$@\"' bash --export").replace("scontrol", ":")
    (tmp_path / "work").mkdir()
    variables = dict.fromkeys(("SLURM_JOB_ID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_CPUS_ON_NODE"), "1")
    variables |= {"PATH": os.environ["PATH"], "SLURM_SUBMIT_DIR": str(tmp_path), "TMPDIR": str(tmp_path / "node tmp")}
    variables |= {"SLURM_JOB_NODELIST": "n", "SLURMD_NODENAME": "n"}
    (tmp_path / "node tmp").mkdir()
    result = subprocess.run(["bash", "-c", text], env=variables, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (7, f"{tmp_path}/node tmp/gpucourse-\n"), result.stderr
    assert list((tmp_path / "node tmp").iterdir()) == []


def test_render_with_restarts_notes_each_life_of_a_rank(tmp_path: Path) -> None:
    """Run the lines of the file as torchrun does, for two lives."""
    text = text_of(ELASTIC)
    prepare = text[text.index("rm -rf") : text.index("# srun starts one torchrun")]
    rank = 'bash -c "$rank_command" bash sh -c "printf $life; exit $((9 - 9 * life))"'
    lives = f"for life in 0 1; do TORCHELASTIC_RESTART_COUNT=$life {rank} || true; done"
    script = f"set -u\nmkdir logs\n{prepare}\n{lives}"
    variables = {"PATH": os.environ["PATH"], "SLURM_SUBMIT_DIR": str(tmp_path), "SLURMD_NODENAME": "node1", "RANK": "3"}
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=variables, check=True)
    assert (tmp_path / "logs/node1-rank3.log").read_text() == "0\n--- restart 1 ---\n1"
    notes = {file.name: file.read_text().split()[:2] for file in (tmp_path / "ranks").iterdir()}
    assert notes == {"3-0": ["9", "node1"], "3-1": ["0", "node1"]}


def test_render_sets_a_typed_variable_once() -> None:
    job = SbatchJob(title="t", name="n", partition="", nodes=2, time_s=60, command=("python3", "x.py"))
    usual = render(job)
    assert "export OMP_NUM_THREADS=" in usual
    assert "GLOO_SOCKET_IFNAME" in usual
    custom_job = SbatchJob(
        title="t", name="n", partition="", nodes=2, time_s=60, command=("python3", "x.py"),
        environment={"OMP_NUM_THREADS": "3", "GLOO_SOCKET_IFNAME": "lo"},
    )  # fmt: skip
    lines = render(custom_job).splitlines()
    assert [line for line in lines if "OMP_NUM_THREADS" in line] == ["export OMP_NUM_THREADS=3"]
    assert [line for line in lines if "GLOO_SOCKET_IFNAME" in line] == ["export GLOO_SOCKET_IFNAME=lo"]


@pytest.mark.parametrize(("address", "interface"), [("127.0.0.1", "lo"), ("192.0.2.9", "eth7"), ("head-of-cluster", "")])
def test_render_finds_the_interface_on_each_machine(tmp_path: Path, address: str, interface: str) -> None:
    """Run the lines of the file with an `ip` that knows lo by its address and eth7 by a route."""
    ip_script = "case $* in *addr*127.0.0.1*) echo '1: lo    inet 127.0.0.1/8 scope host lo' ;; "
    ip_script += "*route*192.0.2.9*) echo '192.0.2.9 dev eth7 src 192.0.2.1 uid 0' ;; *addr*) ;; *) exit 1 ;; esac"
    (tmp_path / "ip").write_text(f"#!/bin/sh\n{ip_script}\n")
    (tmp_path / "ip").chmod(0o755)
    script = "\n".join(line for line in text_of(SPREAD).splitlines() if re.match(r"  (own|way)=|  \[ -z", line))
    result = subprocess.run(
        ["bash", "-c", f"{script}\necho \"$NCCL_SOCKET_IFNAME $GLOO_SOCKET_IFNAME\""],
        capture_output=True, text=True, check=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "MASTER_ADDR": address},
    )  # fmt: skip
    assert result.stdout.split() == ([interface] * 2 if interface else [])


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [(1, "00:01:00"), (60, "00:01:00"), (61, "00:02:00"), (600, "00:10:00"), (5400, "01:30:00"), (93600, "1-02:00:00")],
)
def test_time_limit_is_whole_minutes_rounded_up(seconds: float, limit: str) -> None:
    assert time_limit(seconds) == limit


def test_render_setup_gives_a_file_of_the_learner_what_the_scripts_look_for(tmp_path: Path) -> None:
    launch_request = replace(request({"kind": "slurm"}), written_batch=WrittenBatch(name="my_job", text="#!/bin/bash\n"))
    batch = batch_of(make_plan(launch_request))
    (tmp_path / "setup.sh").write_text(batch.setup)
    script = (
        'source ./setup.sh; echo "$PATH" | cut -d: -f1,2; echo "$GPUCOURSE_OUT $GPUCOURSE_BACKEND $OMP_NUM_THREADS"; exit 3'
    )
    variables = {"PATH": os.environ["PATH"], "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "7"}
    result = subprocess.run(["bash", "-uc", script], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == [f"{tmp_path}/bin:/opt/course/bin", f"{tmp_path}/outputs gloo 1"]
    assert (result.returncode, (tmp_path / "ended-7").read_text()) == (3, "3\n")


SLEEPS = "( : > begun; exec sleep 60 )"


def test_render_session_finds_the_modules_of_a_login() -> None:
    lines = render_session(ClusterSite(setup=("module load pytorch",))).splitlines()
    assert lines.index(". /etc/profile") < lines.index("module load pytorch")
    assert "/etc/profile" not in render_session(ClusterSite())
    text = render_session(ClusterSite(flags=("--account=a", "--gres=gpu:1")), "gpu")
    assert text.splitlines()[-2:] == ["export SBATCH_PARTITION=gpu", "export SBATCH_ACCOUNT=a"], (
        "a job of the session needs them too"
    )


@pytest.fixture
def fatal_hangup() -> Iterator[None]:
    """Let SIGHUP end what a test starts, even if nohup started the tests."""
    action = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, action)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("TERM", SLEEPS),
        ("HUP", SLEEPS),
        ("XCPU", SLEEPS),
        ("INT", "( trap '' TERM INT HUP USR1 USR2 XCPU; : > begun; sleep 1 )"),  # ends well in spite of the signal
        ("USR1", ": > begun; kill -STOP $$"),
        ("USR2", SLEEPS),
    ],
)
@pytest.mark.usefixtures("fatal_hangup")
def test_render_setup_never_notes_a_success_of_a_job_that_a_signal_ends(tmp_path: Path, name: str, command: str) -> None:
    """End the job by a signal. Earlier commands succeeded, the current one may succeed in spite of the signal, and the note of
    an earlier start exists.
    """
    (tmp_path / "ended-7").write_text("0\n")
    launch_request = replace(request({"kind": "slurm"}), written_batch=WrittenBatch(name="my_job", text="#!/bin/bash\n"))
    batch = batch_of(make_plan(launch_request))
    (tmp_path / "setup.sh").write_text(batch.setup)
    script = f"source ./setup.sh; true; {command}; echo more >> begun"
    variables = {"PATH": os.environ["PATH"], "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "7"}
    with subprocess.Popen(["bash", "-c", script], cwd=tmp_path, env=variables, start_new_session=True) as job:
        until((tmp_path / "begun").exists, "the job's command")
        assert not (tmp_path / "ended-7").exists()
        os.killpg(job.pid, signal.Signals[f"SIG{name}"])
        os.killpg(job.pid, signal.SIGCONT)
        assert job.wait(STUCK_S) == 143
    assert (tmp_path / "ended-7").read_text() == "143\n"
    assert not (tmp_path / "begun").read_text()


@pytest.mark.parametrize(
    ("launcher", "command"),
    [
        ("torchrun", '-m torch.distributed.run --nnodes=2 --nproc-per-node=2 --node-rank="$SLURM_NODEID"'),
        ("accelerate", '--machine_rank="$SLURM_NODEID" --num_processes=4 --main_process_ip="$MASTER_ADDR"'),
        ("python", 'export RANK="$SLURM_NODEID"'),
        ("mpi", 'mpirun -np 4 bash -c "$rank_command" bash python -u work.py'),
    ],
)
def test_render_starts_the_ranks_by_the_launcher_of_the_request(launcher: str, command: str, tmp_path: Path) -> None:
    """Render with the Python, the container and the lines from the settings of the cluster."""
    site = ClusterSite(
        flags=("--account=abc",),
        setup=("module load x",),
        python="python",
        apptainer="$SCRATCH/pt.sif",
        cores=4,
        requests_gpus=True,
    )
    launch_request = replace(request({"kind": "torchrun", "procs_per_node": 2}, ("--x=it's",)), launcher=launcher)
    facts = ClusterFacts(module="3", partition="gpu", nodes=2, threads=None, gpus=2, site=site)
    plan = find_launcher("slurm").plan(launch_request, (head("slurm"),), facts)
    text = text_of(plan)
    assert command in text
    assert text.startswith("#!/bin/bash -l\n")
    assert "set +eu\n# From the settings of your cluster.\nmodule load x\nset -eu\n" in text
    assert 'apptainer exec --nv --bind "${GPUCOURSE_OUT%/jobs/*}" "$SCRATCH/pt.sif" ' in text
    assert "#SBATCH --gres" not in text
    assert (plan.world_size, batch_of(plan).spread, plan.launcher) == (2 if launcher == "python" else 4, True, launcher)
    (tmp_path / "job.sbatch").write_text(text)
    assert subprocess.run(["bash", "-n", str(tmp_path / "job.sbatch")], check=False).returncode == 0
    last = text.rstrip("\n").splitlines()[-1].rpartition("work.py ")[2]
    assert shlex.split(last) == ["--x=it's"]
