"""The commands that a cluster is given for the pod of B.1, and the image of the tracer."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from tests.unit.exercises.scripts import beside_the_script

FOLDER = Path(__file__).parents[3] / "exercises" / "B-ebpf-tracing"
manifests = beside_the_script("shared", "manifests")
policies = beside_the_script("B-ebpf-tracing", "policies")
cluster = beside_the_script("B-ebpf-tracing", "cluster")
SOLVED = (FOLDER / "solutions" / "my_pod.yaml").read_text(encoding="utf-8")
POD = policies.find_pod(manifests.read(SOLVED))
KUBECTL = """\
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


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of programs that play a cluster: kubectl notes what it is asked, the others agree."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl.py").write_text(KUBECTL.format(folder=str(folder)), encoding="utf-8")
    (folder / "kubectl").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/kubectl.py" "$@"\n', encoding="utf-8")
    (folder / "nvidia-smi").write_text("#!/bin/sh\necho GPU 0: L4\n", encoding="utf-8")
    for name in ("k3s", "sudo"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"{folder}/calls"\n', encoding="utf-8")
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


def test_play_applies_traces_and_deletes_a_pod(programs: Path) -> None:
    write_pod(programs, ready=True)
    play = cluster.play(FOLDER / "solutions" / "my_pod.yaml", POD, 16, 8)
    assert play.calls == {"cudaMalloc": 7}, "what the request added, and not what was counted before it"
    assert (play.engine.running, play.tracer.running, play.sight.engine) == (True, True, "7 /opt/libcudart.so.12")
    calls = (programs / "calls").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("sudo -n k3s ctr images import") for line in calls)
    assert any('"nvidia.com/gpu": "1"' in line and line.startswith("patch node node0 --subresource=status") for line in calls)
    assert calls[-1].startswith("delete --filename=")


def test_play_deletes_a_pod_that_keeps_ending(programs: Path) -> None:
    write_pod(programs, ready=False, restarts=2)
    play = cluster.play(FOLDER / "my_pod.yaml", POD, 16, 8)
    assert play.calls is None
    assert (play.tracer.restarts, play.tracer.why) == (2, "CrashLoopBackOff")
    assert (programs / "calls").read_text(encoding="utf-8").splitlines()[-1].startswith("delete")


def test_play_passes_on_the_words_of_a_server_that_refuses(programs: Path) -> None:
    (programs / "refuse").touch()
    with pytest.raises(cluster.ClusterFailed, match="unknown field"):
        cluster.play(FOLDER / "my_pod.yaml", POD, 16, 8)
    assert (programs / "calls").read_text(encoding="utf-8").splitlines()[-1].startswith("delete")


@pytest.mark.skipif(shutil.which("ldd") is None, reason="ldd is not there on this machine")
def test_make_image_has_programs_with_their_libraries(tmp_path: Path) -> None:
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
