"""Run the pod on Kubernetes (k3s on the course's node): apply it, wait for it, send it a request, and delete it again."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import manifests
import played_pod
import policies
from played_pod import Container, Play, Sidecar

HERE = Path(__file__).resolve().parent
IMAGE = "course.local/tracer:1"
TOOLS = ("sh", "id", "sed", "head", "tr", "grep", "sort", "sleep", "bpftrace")  # what sidecar.sh calls
READY_S = 1500.0  # the image of vLLM has about 10 GB, and its first start fetches the model
ANSWER_S = 120.0


class ClusterFailed(Exception):
    """A cluster command failed. The text contains its message."""


def find_reason() -> str | None:
    """Return the reason why no pod can be started here, or None if kubectl reaches a node."""
    for program in ("kubectl", "k3s"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    try:
        return None if _kubectl("get", "nodes", "--output=name").strip() else "the cluster has no node"
    except ClusterFailed as error:
        return str(error)


def _call(words: Sequence[str], *, input_bytes: bytes | None = None, limit_s: float = 60.0) -> str:
    """Return the output of a command. Raises ClusterFailed with the last line of its errors."""
    try:
        process = subprocess.run(words, input=input_bytes, capture_output=True, timeout=limit_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterFailed(f"{words[0]} does not answer: {type(error).__name__}") from None
    if process.returncode != 0:
        last = (process.stderr.decode(errors="replace").strip().splitlines() or [f"exit {process.returncode}"])[-1]
        raise ClusterFailed(f"{' '.join(words[:2])}: {last[:400]}")
    return process.stdout.decode(errors="replace")


def _kubectl(*words: str, input_bytes: bytes | None = None, limit_s: float = 60.0) -> str:
    return _call(["kubectl", *words], input_bytes=input_bytes, limit_s=limit_s)


def make_image(path: Path, programs: Sequence[str] = TOOLS) -> None:
    """Write an image with this computer's own programs and their libraries, in the format of `docker save`.

    Raises ClusterFailed if a program is missing.
    """
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", dereference=True) as files:
        for place in sorted({place for program in programs for place in _list_files(program)}):
            files.add(place, arcname=place.lstrip("/"), filter=_forget_owner)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    config = {
        "architecture": machine, "os": "linux", "config": {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }  # fmt: skip
    listing = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as image:
        for name, content in (
            ("layer.tar", layer.getvalue()), ("config.json", json.dumps(config).encode()),
            ("manifest.json", json.dumps(listing).encode()),
        ):  # fmt: skip
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            image.addfile(entry, io.BytesIO(content))


def _forget_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _list_files(program: str) -> Iterator[str]:
    """Yield a program and the libraries that the loader finds for it."""
    path = shutil.which(program)
    if path is None:
        raise ClusterFailed(f"{program} is missing, and the tracer's image needs it: sudo apt-get install {program}")
    yield path
    for line in _call(["ldd", path]).splitlines():
        yield from (word for word in line.split() if word.startswith("/"))


def prepare() -> None:
    """Set up three things that the pod needs on the node: the tracer's image, its script as a ConfigMap, and the number of
    GPUs.

    k3s has no device plugin here, so the node advertises its GPUs as an extended resource. Raises ClusterFailed.
    """
    with tempfile.TemporaryDirectory(prefix="tracer-") as folder:
        image = Path(folder) / "tracer.tar"
        make_image(image)
        _call(["sudo", "-n", "k3s", "ctr", "images", "import", str(image)], limit_s=300)
    script = f"--from-file=sidecar.sh={HERE / 'sidecar.sh'}"
    config_map = _kubectl("create", "configmap", "sidecar", script, "--dry-run=client", "--output=json")
    _kubectl("apply", "--filename=-", input_bytes=config_map.encode())
    node = json.loads(_kubectl("get", "nodes", "--output=json"))["items"][0]
    if manifests.GPU not in manifests.mapping(node, "status", "allocatable"):
        gpus = len(_call(["nvidia-smi", "-L"]).splitlines())
        patch = json.dumps({"status": {"capacity": {manifests.GPU: str(gpus)}}})
        _kubectl("patch", "node", manifests.name_of(node), "--subresource=status", "--type=merge", f"--patch={patch}")


@contextmanager
def _apply(file: Path) -> Iterator[None]:
    """Create a manifest's pod, and delete it when the block ends. A pod that an earlier run left is deleted first."""
    _kubectl("delete", f"--filename={file}", "--ignore-not-found", "--now", limit_s=120)
    try:
        _kubectl("apply", f"--filename={file}")
        yield
    finally:
        _kubectl("delete", f"--filename={file}", "--ignore-not-found", "--now", limit_s=120)


def play(file: Path, manifest: Mapping[str, Any], prompt: int, tokens: int) -> Play:
    """Start the pod, send one request to vLLM, and return its calls, counted from the tracer's container.

    Raises ClusterFailed.
    """
    result = Play(Container(policies.ENGINE), Container(policies.TRACER))
    name = f"pod/{manifests.name_of(manifest)}"
    prepare()
    with _apply(file):
        address = _wait_until_ready(name, manifest, result)
        with suppress(ClusterFailed):  # of a container that never ran
            for line in _kubectl("logs", name, f"--container={policies.TRACER}").splitlines():
                result.sight.read(line)
        if address is None or not result.tracer.running or not result.sight.engine:
            return result
        words = ["kubectl", "logs", "--follow", "--tail=2", name, f"--container={policies.TRACER}"]
        with Sidecar(words, result.sight) as sidecar:
            result.calls = sidecar.count(lambda: _ask(f"http://{address}:8000", prompt, tokens))
    return result


def _wait_until_ready(name: str, manifest: Mapping[str, Any], result: Play) -> str | None:
    """Return the pod's address once it is ready.

    Return None if a container keeps ending, or if the pod is not ready in time.
    """
    ends = time.monotonic() + READY_S
    while True:
        status = manifests.mapping(json.loads(_kubectl("get", name, "--output=json")), "status")
        result.engine = _read_state(status, manifest, policies.ENGINE)
        result.tracer = _read_state(status, manifest, policies.TRACER)
        conditions = {row.get("type"): row for row in manifests.mappings(status, "conditions")}
        if conditions.get("Ready", {}).get("status") == "True":
            return str(status.get("podIP"))
        if max(result.engine.restarts, result.tracer.restarts) >= played_pod.ATTEMPTS or time.monotonic() > ends:
            return None
        scheduled = conditions.get("PodScheduled", {})
        # for the first minute the scheduler may not know the node's GPU yet
        if scheduled.get("reason") == "Unschedulable" and time.monotonic() > ends - READY_S + 60:
            result.engine.why = result.tracer.why = f"waiting: {str(scheduled.get('message'))[:200]}"
            return None
        time.sleep(2)


def _read_state(status: Mapping[str, Any], manifest: Mapping[str, Any], name: str) -> Container:
    rows = [row for row in manifests.mappings(status, "containerStatuses") if row.get("name") == name]
    if not rows:
        return Container(name)
    state = manifests.mapping(rows[0], "state")
    running = "running" in state
    words = [manifests.mapping(state, kind).get("reason") for kind in ("waiting", "terminated")]
    return Container(
        name, running=running, restarts=int(rows[0].get("restartCount", 0)), uid=policies.user_of(manifest, name),
        why="" if running else str(next((word for word in words if word), "not started"))[:200],
    )  # fmt: skip


def _ask(url: str, prompt: int, tokens: int) -> None:
    with urllib.request.urlopen(f"{url}/v1/models", timeout=ANSWER_S) as answer:
        model = json.loads(answer.read(1 << 20))["data"][0]["id"]
    body = {"model": model, "prompt": [2] * prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    request = urllib.request.Request(f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
        answer.read(1 << 20)
