"""Wrong words on the command line: what happened, what to type, the right exit code; and nothing was changed."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.parts import need
from tests.system import scripts
from tests.system.cli import Learner

pytestmark = pytest.mark.system

COURSE = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("line", "code", "said", "hint"),
    [
        (["deploy", "33"], 2, "there is no module '33'", "known: "),
        (["deploy", "three"], 2, "there is no module 'three'", "known: "),
        (["deploy", "3", "--nodes", "0"], 2, "--nodes 0: module 3 takes 1 to 64 nodes", "gpucourse deploy 3 --nodes 1"),
        (["deploy", "3", "--nodes", "65"], 2, "--nodes 65: module 3 takes 1 to 64 nodes", "gpucourse deploy 3 --nodes 64"),
        (["deploy", "3", "--nodes", "two"], 2, "'two' is not a valid int", "gpucourse deploy --help"),
        (["deploy", "3", "--target", "moon"], 2, "'moon' is not", "gpucourse deploy --help"),
        (["deploy"], 2, "deploy needs the number of a module: 3", "gpucourse deploy --help"),
        (["deploy", "3", "--nodes"], 2, "--nodes needs a value", "gpucourse deploy --help"),
        (["run", "3.2", "--set"], 2, "--set needs a value", "gpucourse run --help"),
        (["status", "--json=yes"], 2, "--json takes no value", "gpucourse status --help"),
        (["fly"], 2, "there is no command 'fly'", "gpucourse --help"),
        (["run", "3.22"], 2, "there is no exercise '3.22'. Did you mean 3.2", "known: "),
        (["run", "3.2"], 3, "the lab of module 3 is not deployed", "gpucourse deploy 3"),
        (["run", "3.2", "--timeout", "soon"], 2, "'soon' is not a duration", "--timeout 10m"),
        (["ssh", "3"], 3, "the lab of module 3 is not deployed", "gpucourse deploy 3"),
        (["show", "4.9"], 2, "there is no exercise '4.9'", "known: "),
        (["show", "3", "--part", "4"], 2, "the lesson of module 3 has 3 parts, not 4", "gpucourse show 3"),
        (["show", "3.1", "--part", "2"], 2, "3.1 is an exercise; only a lesson has parts", "gpucourse show 3.1"),
        (["logs"], 2, "there are no runs yet", "gpucourse next"),
        (["cancel", "otter"], 2, "there are no runs yet", "gpucourse next"),
        (["check", "3.1"], 3, "no run of 3.1 has succeeded yet", "gpucourse run 3.1"),
        (["destroy"], 2, "name one module, or all of them", "gpucourse destroy --all"),
        (["destroy", "3", "--all"], 2, "name one module, or all of them", "gpucourse destroy --all"),
        (["destroy", "9"], 2, "there is no module '9'", "known: "),
        (["logs", "-f", "--fold"], 2, "cannot be combined", "gpucourse logs --fold"),
    ],
)
def test_wrong_words(learner: Learner, line: list[str], code: int, said: str, hint: str) -> None:
    typed = learner.types(*line, code=code)
    assert said in typed.err
    assert f"→ {hint}" in typed.err or hint in typed.err.split("→")[-1]
    assert "Traceback" not in typed.err
    assert not learner.stack_folder().exists()


def test_more_nodes_than_open_files_are_allowed_for(learner: Learner) -> None:
    few = replace(learner, before=("sh", "-c", 'ulimit -n 256 && exec "$@"', "sh"))
    refused = few.types("deploy", "3", "--nodes", "64", code=3).err
    assert "64 simulated nodes take 660 open files, and the limit here is 256 (ulimit -Hn)" in refused
    assert "gpucourse deploy 3 --nodes 23" in refused
    assert not learner.stack_folder().exists()
    few.types("deploy", "3", "--nodes", "23", "--dry-run")


@pytest.mark.parametrize(
    ("line", "said", "hint"),
    [
        (["run", "3.2", "--nodes", "3"], "3 nodes were asked for, 2 are deployed", "gpucourse deploy 3 --nodes 3"),
        (["run", "3.2", "--nodes", "0"], "--nodes 0", "--nodes 1"),
        (["run", "3.2", "--nodes", "65"], "65", "--nodes"),
        (["run", "3.2", "--set", "batchsize=3"], "Did you mean batch_size", "parameters of 3.2"),
        (["run", "3.2", "--set", "batch_size=0"], "1", "batch_size"),
        (["run", "3.2", "--set", "batch_size=many"], "many", "batch_size"),
        (["run", "3.2", "--set", "batch_size"], "not of the form name=value", "gpucourse show 3.2"),
        (["run", "--script", "nowhere.py"], "there is no such file", "name a Python file"),
        (["ssh", "3", "--node", "7"], "there is no node '7'", "node0, node1"),
    ],
)
def test_wrong_words_with_a_lab(lab: Learner, line: list[str], said: str, hint: str) -> None:
    typed = lab.types(*line, code=2)
    assert said in typed.err
    assert hint in typed.err
    assert not (lab.workspace / "runs").exists()


def test_hints_come_one_at_a_time_and_the_last_one_stays(learner: Learner) -> None:
    first = learner.documents("hint", "3.2")
    given = [learner.documents("hint", "3.2")["hint"] for _ in range(first["of"] + 1)]
    assert [first["hint"], *given] == [*range(1, first["of"] + 1), first["of"], first["of"]]
    assert learner.documents("hint", "3.1")["hint"] == 1


def test_errors_are_documents_for_programs(learner: Learner) -> None:
    error = json.loads(learner.types("deploy", "33", "--json", code=2).out)
    assert error["version"] == 1
    assert error["error"]["code"] == "unknown_name"
    assert error["error"]["exit_code"] == 2


@pytest.mark.slow
def test_hostile_parameter_values_travel_unharmed(lab: Learner, tmp_path: Path) -> None:
    nasty = ["a 'b' \"c\"", "$(touch owned)", "`id`", "line\nline", "--flag", "{rank}", "ü\t;&|", "", "*", "~"]
    script = scripts.write(tmp_path, "arguments")
    for launcher in ("python", "torchrun"):
        lab.types("run", "--nodes", "1", "--script", script, "--launcher", launcher, "--", *nasty)
        assert json.loads((lab.run_folder() / "outputs/node0/argv.json").read_text()) == nasty
    assert not list(lab.stack_folder().rglob("owned"))
    shutil.rmtree(lab.workspace / "runs")


def test_a_broken_manifest_names_file_key_and_reason_the_others_work(learner: Learner, tmp_path: Path) -> None:
    course = tmp_path / "course"
    for part in ("modules", "exercises", "terraform"):
        shutil.copytree(COURSE / part, course / part)
    shutil.copytree(course / "modules/03-parallel-computing", course / "modules/04-broken")
    manifest = course / "modules/04-broken/module.yaml"
    manifest.write_text(manifest.read_text().replace('id: "3"', 'id: "4"').replace("kind: torchrun", "kind: torchurn"))
    typed = learner.types("list", code=2, GPUCOURSE_COURSE=str(course))
    said = typed.out + typed.err
    assert "modules/04-broken/module.yaml" in said
    assert "exercises.0.launch.kind" in said
    assert "3.2" in said, "the sound module is listed all the same"
    learner.types("show", "3.2", GPUCOURSE_COURSE=str(course))


def test_no_terraform(learner: Learner) -> None:
    typed = learner.types("deploy", "3", code=3, GPUCOURSE_TERRAFORM="/nowhere/terraform")
    assert "/nowhere/terraform" in typed.err
    assert "→" in typed.err


def test_no_torch(learner: Learner, tmp_path: Path) -> None:
    learner.types("deploy", "3")
    record = learner.workspace / ".gpucourse/deployments/03-local.json"
    plain = tmp_path / "plain"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(plain)], check=True)
    known = json.loads(record.read_text())
    for node in known["inventory"]["nodes"]:
        node["python"] = str(plain / "bin" / "python")
    record.write_text(json.dumps(known))
    typed = learner.types("run", "3.2", code=3)
    assert "torch is not installed on node0" in typed.err
    assert "pip install" in typed.err


def test_a_file_where_the_programs_folder_should_be(learner: Learner) -> None:
    (learner.workspace / ".gpucourse").write_text("in the way")
    typed = learner.types("deploy", "3", code=3)
    assert ".gpucourse" in typed.err
    assert "Traceback" not in typed.err
    assert (learner.workspace / ".gpucourse").read_text() == "in the way"
    (learner.workspace / ".gpucourse").unlink()


def test_a_read_only_workspace(learner: Learner) -> None:
    learner.types("status", mount="ro,size=1m")  # looks, and makes no workspace
    for line in (["init", str(learner.workspace)], ["deploy", "3"]):
        typed = learner.types(*line, code=3, mount="ro,size=1m")
        assert "not allowed to write" in typed.err
        assert "--workspace DIR" in typed.err


def test_a_full_disk(learner: Learner) -> None:
    typed = learner.types("deploy", "3", code=3, mount="size=64k")
    assert "no space left" in typed.err
    assert "df -h" in typed.err
    assert learner.processes() == []


ON_A_SMALL_DISK = """
mount -t tmpfs -o size=200m,mode=700 none "$1" && shift && "$1" "$2" "$3" deploy 0 --yes --quiet || exit
"$@"; code=$?
"$1" "$2" "$3" destroy 0 --yes --quiet
exit $code
"""


@pytest.mark.slow
def test_a_disk_that_takes_no_outputs_is_told_before_the_run(learner: Learner) -> None:
    before = (need("unshare"), "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", str(learner.workspace))
    learner.types("list", mount="size=1m")  # skips where a small disk cannot be mounted
    typed = replace(learner, before=before).types("run", "0.1", "--dry-run")
    assert f"the disk of {learner.workspace} has " in typed.err
    assert "outputs are collected only while 256.0 MiB stay free" in typed.err
    assert learner.processes() == []


def test_a_workspace_of_a_newer_version_is_refused_and_kept(learner: Learner) -> None:
    learner.types("list")
    identity = learner.workspace / ".gpucourse/workspace.json"
    before = identity.read_text()
    identity.write_text(before.replace('"version": 1', '"version": 7'))
    typed = learner.types("deploy", "3", code=3)
    assert "format 7" in typed.err
    assert "upgrade" in typed.err
    assert '"version": 7' in identity.read_text()
    identity.write_text(before)


def test_the_port_range_is_taken(learner: Learner) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        learner.types("deploy", "3", "--nodes", "1")
        (learner.workspace / "gpucourse.yaml").write_text(f"rendezvous_ports: {port}-{port}\n")
        typed = learner.types("run", "3.1", "--nodes", "1", code=3)
    assert f"every port from {port} to {port} is taken on node0" in typed.err
    assert "rendezvous_ports" in typed.err
