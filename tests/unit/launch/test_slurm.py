"""The files for sbatch, word for word, and what is asked of Slurm."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch import slurm
from gpucourse.launch.launcher import ClusterFacts, LaunchRequest, WrittenBatch, find_launcher
from gpucourse.launch.sbatch import time_limit
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Mode, Node
from gpucourse.model.plan import Batch, LaunchPlan
from tests.waiting import STUCK_S, until

GOLDEN = Path(__file__).parents[2] / "data" / "slurm" / "rendered"


def head(mode: Mode = "local", python: str = "/opt/course/bin/python") -> Node:
    return Node(
        name="node0", role="head", address="203.0.113.1", port=22, private_address="10.0.0.1", user="me", gpus=0,
        instance_type="t3.medium", python=python, mode=mode,
    )  # fmt: skip


def request(launch: dict[str, object], arguments: tuple[str, ...] = (), **parameters: object) -> LaunchRequest:
    exercise = Exercise.model_validate(
        {
            "id": "2.9", "title": "A job", "goal": "run", "minutes": 10, "script": "work.py", "tasks": ["run it"],
            "hints": ["look"], "launch": {"procs_per_node": 1, "timeout": "10m", **launch},
        }
    )  # fmt: skip
    return LaunchRequest(
        exercise=exercise, launcher="slurm-pty" if launch["kind"] == "slurm-pty" else "slurm", script="work.py",
        parameters=parameters, arguments=arguments, uploads=(), timeout_s=600,
    )  # fmt: skip


def make_plan(
    wanted: LaunchRequest, *, nodes: int = 1, mode: Mode = "local", gpus: int = 1, partition: str = "gpu"
) -> LaunchPlan:
    threads = 1 if mode == "local" else None
    facts = ClusterFacts(module="2", partition=partition, nodes=nodes, threads=threads, gpus=gpus)
    return find_launcher(wanted.launcher).plan(wanted, (head(mode),), facts, run_id="20260131-142501-otter")


def batch_of(plan: LaunchPlan) -> Batch:
    """Return what is submitted."""
    assert plan.batch is not None
    return plan.batch


def text_of(plan: LaunchPlan) -> str:
    """Return the first file that is submitted."""
    return batch_of(plan).files[0].text


ONE = make_plan(request({"kind": "slurm", "slurm": {"jobs": "jobs"}}, ("--size=512",), jobs=1))
SPREAD = make_plan(
    request({"kind": "slurm", "nodes": 2, "procs_per_node": "procs"}, ("--name=it's $HOME",), procs=2), nodes=2, mode="aws"
)
SWEEP = make_plan(
    request(
        {"kind": "slurm", "slurm": {"array": "values", "at_once": "at_once", "gather": "gather.py"}},
        ("--values=1,2,3",),
        values="1,2,3",
        at_once=2,
    ),
    partition="",
    gpus=0,
)
ELASTIC = make_plan(
    request({"kind": "torchrun", "nodes": 2, "procs_per_node": "procs", "restarts": "restarts"}, procs=2, restarts=3), nodes=2
)
RENDERED = {"job": ONE, "spread": SPREAD, "elastic": ELASTIC}


@pytest.mark.parametrize("name", RENDERED)
def test_batch_file_is_that_of_the_golden_folder_word_for_word_and_good_shell(name: str) -> None:
    file = GOLDEN / f"{name}.sbatch"
    text = text_of(RENDERED[name])
    if os.environ.get("REWRITE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
    assert subprocess.run(["bash", "-n", str(file)], check=False).returncode == 0
    if linter := shutil.which("shellcheck"):
        assert subprocess.run([linter, str(file)], check=False).returncode == 0


def test_arguments_reach_the_script_as_they_are() -> None:
    last = text_of(SPREAD).rstrip("\n").rpartition("' bash ")[2]
    said = subprocess.run(["bash", "-c", f"printf '%s\\n' {last}"], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "--name=it's $HOME"


def test_plan_says_what_is_submitted_and_how_often() -> None:
    five = make_plan(request({"kind": "slurm", "slurm": {"jobs": "jobs", "show_queue": True, "cancel_last": True}}, jobs=5))
    batch = batch_of(five)
    assert [(file.name, file.copies, file.tasks, file.after) for file in batch.files] == [("job", 5, 0, "")]
    assert (batch.show_queue, batch.cancel_last, five.world_size) == (True, True, 5)
    assert not batch_of(ONE).cancel_last
    assert [(file.name, file.rows, file.after) for file in batch_of(SWEEP).files] == [("array", 3, ""), ("gather", 1, "array")]
    assert SWEEP.world_size == 4
    assert "#SBATCH --array=0-2%2\n" in text_of(SWEEP)
    assert "python -u gather.py --values=1,2,3\n" in batch_of(SWEEP).files[1].text
    assert SPREAD.world_size == 4
    assert SPREAD.commands[0].argv == ("sbatch", "--parsable", "job.sbatch")


def test_torchrun_exercise_becomes_one_process_a_gpu_under_srun() -> None:
    plan = make_plan(request({"kind": "torchrun", "procs_per_node": "gpu"}), nodes=2, gpus=4, mode="aws")
    assert (batch_of(plan).tasks, plan.world_size) == (4, 8)
    text = text_of(plan)
    assert "#SBATCH --ntasks-per-node=4" in text
    assert "#SBATCH --gres=gpu:4" in text
    assert "export GPUCOURSE_BACKEND=nccl" in text


def test_with_restarts_each_node_gets_one_torchrun() -> None:
    batch = batch_of(ELASTIC)
    assert (batch.tasks, batch.max_restarts, batch.spread, ELASTIC.max_restarts, ELASTIC.world_size) == (2, 3, True, 3, 4)
    alone = batch_of(make_plan(request({"kind": "torchrun", "restarts": 1})))
    assert alone.spread, "also one rank alone has a log of its own, for all its lives"
    never = batch_of(make_plan(request({"kind": "torchrun", "nodes": 2, "restarts": "restarts"}, restarts=0), nodes=2))
    assert "torch.distributed.run" not in never.files[0].text


def test_rank_under_slurm_notes_each_of_its_lives(tmp_path: Path) -> None:
    """The lines of the file are run as torchrun runs them, for two lives."""
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


@pytest.mark.parametrize(("procs", "backend"), [(1, "nccl"), (2, "gloo")])
def test_more_processes_than_gpus_by_choice_compute_on_processors(procs: int, backend: str) -> None:
    """NCCL refuses two ranks on one GPU."""
    plan = make_plan(request({"kind": "slurm", "nodes": 2, "procs_per_node": "procs"}, procs=procs), nodes=2, mode="aws")
    assert f"export GPUCOURSE_BACKEND={backend}" in text_of(plan)


def test_nccl_is_told_its_sockets_and_the_interface_between_the_machines() -> None:
    wanted = replace(request({"kind": "torchrun", "procs_per_node": "gpu"}), nccl={"NCCL_NET": "Socket"})
    plan = make_plan(wanted, nodes=2, gpus=1, mode="aws")
    text = text_of(plan)
    assert "export NCCL_NET=Socket" in text
    assert 'export NCCL_SOCKET_IFNAME="${own:-$way}" GLOO_SOCKET_IFNAME="${own:-$way}"' in text
    simulated = make_plan(wanted, nodes=2, gpus=0)
    assert "NCCL_NET" not in text_of(simulated), "gloo has no use for it"


@pytest.mark.parametrize(("address", "interface"), [("127.0.0.1", "lo"), ("192.0.2.9", "eth7"), ("head-of-cluster", "")])
def test_interface_is_found_on_each_machine(tmp_path: Path, address: str, interface: str) -> None:
    """The lines of the file are run, with an `ip` that knows lo by its address and eth7 by a route."""
    says = "case $* in *addr*127.0.0.1*) echo '1: lo    inet 127.0.0.1/8 scope host lo' ;; "
    says += "*route*192.0.2.9*) echo '192.0.2.9 dev eth7 src 192.0.2.1 uid 0' ;; *addr*) ;; *) exit 1 ;; esac"
    (tmp_path / "ip").write_text(f"#!/bin/sh\n{says}\n")
    (tmp_path / "ip").chmod(0o755)
    script = "\n".join(line for line in text_of(SPREAD).splitlines() if re.match(r"  (own|way)=|  \[ -z", line))
    done = subprocess.run(
        ["bash", "-c", f"{script}\necho \"$NCCL_SOCKET_IFNAME $GLOO_SOCKET_IFNAME\""],
        capture_output=True, text=True, check=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "MASTER_ADDR": address},
    )  # fmt: skip
    assert done.stdout.split() == ([interface] * 2 if interface else [])


def test_terminal_is_the_plain_command_with_its_name_in_the_environment() -> None:
    plan = make_plan(request({"kind": "slurm-pty", "timeout": "1h"}))
    command = plan.commands[0]
    assert " ".join(command.argv) == "srun --partition=gpu --gres=gpu:1 --pty bash"
    assert command.env["SLURM_JOB_NAME"] == "2.9-otter"
    assert command.env["SLURM_TIMELIMIT"] == "10"
    assert batch_of(plan).session


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [(1, "00:01:00"), (60, "00:01:00"), (61, "00:02:00"), (600, "00:10:00"), (5400, "01:30:00"), (93600, "1-02:00:00")],
)
def test_time_limits_are_whole_minutes_rounded_up(seconds: float, limit: str) -> None:
    assert time_limit(seconds) == limit


@pytest.mark.parametrize("values", ["", ",", "1,,2", " ", ",".join("1" * 65)])
def test_values_that_are_no_list_are_refused(values: str) -> None:
    with pytest.raises(UsageError, match="--set values="):
        make_plan(request({"kind": "slurm", "slurm": {"array": "values"}}, values=values))


@pytest.mark.parametrize(("at_once", "array"), [(0, "0-3"), (2, "0-3%2"), (4, "0-3"), (9, "0-3")])
def test_array_is_throttled_only_if_that_has_an_effect(at_once: int, array: str) -> None:
    plan = make_plan(
        request({"kind": "slurm", "slurm": {"array": "values", "at_once": "at_once"}}, values="1,2,3,4", at_once=at_once)
    )
    assert f"#SBATCH --array={array}\n" in text_of(plan)


def test_too_many_nodes_are_refused_with_the_command_that_works() -> None:
    wanted = request({"kind": "slurm", "nodes": 2, "min_nodes": 2, "max_nodes": 3})
    assert slurm.nodes_of(wanted, None) == 2
    with pytest.raises(UsageError, match="2 to 3 nodes, not on 4") as caught:
        slurm.nodes_of(wanted, 4)
    assert caught.value.hint == "gpucourse run 2.9 --nodes 3"


def test_partition_is_the_one_that_was_named() -> None:
    launch: dict[str, object] = {"kind": "slurm", "slurm": {"partition": "queue"}}
    assert slurm.partition_of(request({"kind": "slurm"})) == ""
    usual = request(launch, queue="a100")
    own = replace(usual, written=WrittenBatch(name="my_job", text="#!/bin/bash\n#SBATCH -p short\ntrue\n"))
    assert slurm.partition_of(usual) == "a100"
    assert slurm.partition_of(own) == "short"
    assert slurm.partition_of(own, "long") == slurm.partition_of(usual, "long") == "long", "sbatch reads it last"
    assert slurm.partition_of(replace(own, typed=frozenset({"queue"})), "long") == "a100"
    bare = replace(own, written=WrittenBatch(name="my_job", text="#!/bin/bash\ntrue\n"))
    assert slurm.partition_of(bare) == "", "the cluster's default, whatever the course prefers"


def test_typed_values_overrule_the_variables_of_sbatch() -> None:
    wanted = request({"kind": "slurm", "slurm": {"partition": "queue"}}, queue="gpu")
    plan = make_plan(replace(wanted, typed=frozenset({"queue", "timeout", "nodes"})))
    assert plan.commands[0].argv == ("sbatch", "--parsable", "--time=00:10:00", "--partition=gpu", "job.sbatch")


def test_script_of_the_learner_has_no_gather_job() -> None:
    wanted = request({"kind": "slurm", "slurm": {"array": "values", "gather": "gather.py"}})
    own = LaunchRequest(
        exercise=wanted.exercise, launcher="slurm", script="mine.py", parameters={}, arguments=(), uploads=(), timeout_s=60
    )
    plan = make_plan(own)
    assert [file.name for file in batch_of(plan).files] == ["job"]


@pytest.mark.parametrize("kind", ["slurm", "slurm-pty"])
def test_jobs_run_with_the_python_of_the_nodes(kind: str) -> None:
    facts = ClusterFacts(module="2", partition="gpu", nodes=1, threads=None, gpus=1, python="/opt/pytorch/bin/python")
    plan = find_launcher(kind).plan(request({"kind": kind}), (head("aws"),), facts, run_id="20260131-142501-otter")
    if kind == "slurm":
        assert "/opt/pytorch/bin/python -u work.py" in text_of(plan)
        assert plan.commands[0].node.python == head("aws").python
    else:
        assert plan.commands[0].node.python == "/opt/pytorch/bin/python"


def test_file_of_the_learner_is_submitted_as_it_is() -> None:
    text = "#!/bin/bash\n#SBATCH --array=0-3%2\nsource ./setup.sh\n"
    launch: dict[str, object] = {
        "kind": "slurm",
        "slurm": {"partition": "partition", "array": "values", "at_once": "at_once", "gather": "gather.py"},
    }
    wanted = replace(
        request(launch, ("--values=1,2,3",), values="1,2,3", at_once=3, partition="gpu"),
        written=WrittenBatch(name="my_array", text=text, tasks=4),
        typed=frozenset({"at_once", "timeout"}),
    )
    plan = make_plan(wanted)
    batch = batch_of(plan)
    first, gather = batch.files
    assert (first.name, first.text, first.tasks, first.arguments) == ("my_array", text, 4, ("--values=1,2,3",))
    assert first.flags == ("--time=00:10:00", "--array=0-3%3")  # what was typed, and nothing else
    assert gather.after == "my_array"
    assert plan.commands[0].argv[-2:] == ("my_array.sbatch", "--values=1,2,3")
    assert batch_of(make_plan(replace(wanted, written=None))) != batch
    assert not batch_of(ONE).setup


def test_setup_gives_a_file_of_the_learner_what_the_scripts_look_for(tmp_path: Path) -> None:
    wanted = replace(request({"kind": "slurm"}), written=WrittenBatch(name="my_job", text="#!/bin/bash\n"))
    batch = batch_of(make_plan(wanted))
    (tmp_path / "setup.sh").write_text(batch.setup)
    script = 'source ./setup.sh; echo "$PATH" | cut -d: -f1; echo "$GPUCOURSE_OUT $GPUCOURSE_BACKEND $OMP_NUM_THREADS"; exit 3'
    variables = {"PATH": os.environ["PATH"], "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "7"}
    done = subprocess.run(["bash", "-uc", script], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["/opt/course/bin", f"{tmp_path}/outputs gloo 1"]
    assert (done.returncode, (tmp_path / "ended-7").read_text()) == (3, "3\n")


SLEEPS = "( : > begun; exec sleep 60 )"


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
def test_job_that_a_signal_ends_never_notes_a_success(tmp_path: Path, name: str, command: str) -> None:
    """The commands before succeeded, the one under way may end well in spite of the signal, and a note of an earlier start is
    there."""
    (tmp_path / "ended-7").write_text("0\n")
    wanted = replace(request({"kind": "slurm"}), written=WrittenBatch(name="my_job", text="#!/bin/bash\n"))
    batch = batch_of(make_plan(wanted))
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


def test_exercise_of_one_process_stays_one_on_a_node_with_many_gpus() -> None:
    """`--procs` is torchrun's, as with the exercise's own launcher."""
    alone = request({"kind": "python", "procs_per_node": "gpu"})
    assert [slurm.tasks_of(replace(alone, processes=procs), 8) for procs in (None, 4)] == [1, 1]
    plan = make_plan(alone, gpus=1)
    assert (batch_of(plan).tasks, plan.world_size, batch_of(plan).spread) == (1, 1, False)
    assert "srun" not in text_of(plan).splitlines()[-1]
