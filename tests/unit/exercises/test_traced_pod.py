"""The manifest of B.1: its ten policies, what a server would refuse, and the commands that a cluster is given."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

FOLDER = Path(__file__).parents[3] / "exercises" / "B-ebpf-tracing"
manifests = beside_the_script("shared", "manifests")
policies = beside_the_script("B-ebpf-tracing", "policies")
played_pod = beside_the_script("B-ebpf-tracing", "played_pod")
cluster = beside_the_script("B-ebpf-tracing", "cluster")
SOLVED = (FOLDER / "solutions" / "my_pod.yaml").read_text(encoding="utf-8")
POD = policies.find_pod(manifests.read(SOLVED))

KUBECTL = """\
#!{python}
import json, sys, time
from pathlib import Path
folder, words = Path({folder!r}), sys.argv[1:]
with (folder / "calls").open("a") as calls: calls.write(" ".join(words) + "\\n")
def counts(): return json.dumps({{"type": "map", "data": {{"@calls": {{"cudaMalloc": 5 + 7 * (folder / "asked").exists()}}}}}})
if words[:2] == ["get", "nodes"]:
    print(json.dumps({{"items": [{{"metadata": {{"name": "node0"}}, "status": {{"allocatable": {{"cpu": "4"}}}}}}]}}))
elif words[0] == "get":
    print((folder / "pod.json").read_text())
elif words[0] == "logs" and "--follow" not in words:
    print("user 0\\nbtf yes\\ntracefs yes\\nprocesses 4\\nengine 7 /opt/libcudart.so.12")
elif words[0] == "logs":
    while True:
        print(counts(), json.dumps({{"type": "printf", "data": "counted\\n"}}), sep="\\n", flush=True)
        time.sleep(0.01)
elif words[0] == "apply" and (folder / "refuse").exists() and "--filename=-" not in words:
    sys.exit('Error from server (BadRequest): strict decoding error: unknown field "spec.sharedProcessNamespace"')
else:
    print("{{}}")
"""


def solved_with(old: str, new: str) -> dict[str, Any]:
    assert SOLVED.count(old) == 1
    pod: dict[str, Any] = policies.find_pod(manifests.read(SOLVED.replace(old, new)))
    return pod


def find_broken(pod: dict[str, Any]) -> list[str]:
    return [policy.policy for policy in policies.check(pod) if not policy.holds]


@pytest.mark.parametrize(
    ("old", "new", "policy"),
    [
        ("runAsUser: 0", "runAsGroup: 0", ["root"]),
        ("add: [SYS_ADMIN, SYS_PTRACE]", "add: [CAP_SYS_ADMIN, CAP_SYS_PTRACE]", ["rights"]),
        ("add: [SYS_ADMIN, SYS_PTRACE]", "add: [ALL]", ["least"]),
        ("shareProcessNamespace: true", "hostPID: true", ["shared", "least"]),
        ("mountPath: /sys/kernel/btf, readOnly: true", "mountPath: /sys/kernel/btf", ["btf"]),
        ("hostPath: {path: /sys/kernel/tracing, type: Directory}", "emptyDir: {}", ["tracefs"]),
        ("limits: {nvidia.com/gpu: 1}", "requests: {nvidia.com/gpu: 1}", ["gpu"]),
        ("containerPort: 8000", "containerPort: 8080", ["ports"]),
        ("imagePullPolicy: Never", "imagePullPolicy: Always", ["images"]),
    ],
)
def test_each_policy_is_broken_by_what_it_forbids(old: str, new: str, policy: list[str]) -> None:
    assert find_broken(solved_with(old, new)) == policy


@pytest.mark.parametrize("value", [None, [], "text", 3, {"a": [1]}, [None, 7, {"name": 3}]])
def test_a_manifest_of_odd_shape_breaks_policies_and_nothing_else(value: object) -> None:
    for key in ("spec", "metadata"):
        assert find_broken({"kind": "Pod", key: value})
    for key in ("containers", "volumes", "securityContext"):
        assert find_broken({"kind": "Pod", "spec": {key: value}})
    box = {
        "name": "tracer",
        "securityContext": value,
        "resources": value,
        "ports": value,
        "volumeMounts": value,
        "image": value,
    }
    assert "rights" in find_broken({"kind": "Pod", "spec": {"containers": [box, {"name": "engine"}]}})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kind: Pod", "kind: Job", "no Pod"),
        ("containerPort: 8000", 'containerPort: "8000"', "has to be a number"),
        ("shareProcessNamespace: true", "shareProcessNamespace: true\n  hostPID: true", "cannot both be true"),
        ("nvidia.com/gpu: 1", "nvidia.com/gpu: 2", "the pod asks for 2 GPUs"),
        ("- name: tracer\n", "- name: other\n", "no container tracer"),
        ("spec:", "spec", "refused: line"),
    ],
)
def test_what_a_server_refuses_is_said_before_anything_starts(old: str, new: str, words: str) -> None:
    assert words in played_pod.find_refusal(SOLVED.replace(old, new, 1))


def test_the_solution_starts_and_the_delivered_pod_does_not() -> None:
    assert played_pod.find_refusal(SOLVED) is None
    assert played_pod.find_refusal((FOLDER / "my_pod.yaml").read_text(encoding="utf-8")) is not None


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that play a cluster: kubectl notes what it is asked, the others agree."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").write_text(KUBECTL.format(python=sys.executable, folder=str(folder)), encoding="utf-8")
    (folder / "nvidia-smi").write_text("#!/bin/sh\necho GPU 0: L4\n", encoding="utf-8")
    for name in ("k3s", "sudo"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{folder}/calls\n', encoding="utf-8")
    for path in folder.iterdir():
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setattr(cluster, "_ask", lambda *_words: (folder / "asked").touch())
    monkeypatch.setattr(cluster, "make_image", lambda path: path.touch())
    return folder


def write_pod(folder: Path, *, ready: bool, restarts: int = 0) -> None:
    state = {"running": {}} if ready else {"waiting": {"reason": "CrashLoopBackOff"}}
    names = [{"name": name, "restartCount": restarts, "state": state} for name in ("engine", "tracer")]
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"podIP": "10.42.0.9", "containerStatuses": names, "conditions": conditions}
    (folder / "pod.json").write_text(json.dumps({"status": status}), encoding="utf-8")


def test_a_pod_on_a_cluster_is_applied_traced_and_deleted(programs: Path) -> None:
    write_pod(programs, ready=True)
    play = cluster.play(FOLDER / "solutions" / "my_pod.yaml", POD, 16, 8)
    assert play.calls == {"cudaMalloc": 7}, "what the request added, and not what was counted before it"
    assert (play.engine.running, play.tracer.running, play.sight.engine) == (True, True, "7 /opt/libcudart.so.12")
    asked = (programs / "calls").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("sudo -n k3s ctr images import") for line in asked)
    assert any('"nvidia.com/gpu": "1"' in line and line.startswith("patch node node0 --subresource=status") for line in asked)
    assert asked[-1].startswith("delete --filename=")


def test_a_pod_that_keeps_ending_is_deleted_and_not_traced(programs: Path) -> None:
    write_pod(programs, ready=False, restarts=2)
    play = cluster.play(FOLDER / "my_pod.yaml", POD, 16, 8)
    assert play.calls is None
    assert (play.tracer.restarts, play.tracer.why) == (2, "CrashLoopBackOff")
    assert (programs / "calls").read_text(encoding="utf-8").splitlines()[-1].startswith("delete")


def test_the_words_of_a_refusing_server_reach_the_learner(programs: Path) -> None:
    (programs / "refuse").touch()
    with pytest.raises(cluster.ClusterFailed, match="unknown field"):
        cluster.play(FOLDER / "my_pod.yaml", POD, 16, 8)
    assert (programs / "calls").read_text(encoding="utf-8").splitlines()[-1].startswith("delete")


@pytest.mark.skipif(shutil.which("ldd") is None, reason="ldd is not there on this machine")
def test_the_image_of_the_tracer_has_programs_with_their_libraries(tmp_path: Path) -> None:
    cluster.make_image(tmp_path / "image.tar", ("sh", "sed"))
    with tarfile.open(tmp_path / "image.tar") as image:
        read = {name: image.extractfile(name).read() for name in image.getnames()}  # type: ignore[union-attr]
    [listing] = json.loads(read["manifest.json"])
    assert listing["RepoTags"] == ["course.local/tracer:1"]
    with tarfile.open(fileobj=io.BytesIO(read["layer.tar"])) as layer:
        names = {Path(name).name for name in layer.getnames()}
        assert {"sh", "sed"} <= names
        assert any(name.startswith("libc.so") for name in names)
        assert not any(entry.issym() for entry in layer.getmembers())
    with pytest.raises(cluster.ClusterFailed, match="not-a-program is missing"):
        cluster.make_image(tmp_path / "none.tar", ("not-a-program",))
