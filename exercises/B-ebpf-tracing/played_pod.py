"""Play a pod without Kubernetes: processes in their own namespaces act as its containers, as the manifest says.

Each container has its own mounts and a root folder in memory. With `shareProcessNamespace`, both containers see the same
processes. The tracer gets the node's folders, the user and the capabilities that the
manifest requests. If this computer's user is not root, other users cannot be played, and `user_played` is false. The pod's
first process ends with this process, and everything else ends with it.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import manifests
import policies
import stand_in
import tracers

HERE = Path(__file__).resolve().parent
SCRIPT_FOLDER = "/opt/tracer"  # where the ConfigMap `sidecar` is mounted
PROGRAMS = ("unshare", "nsenter", "setpriv", "pivot_root")
USUAL = ("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "net_bind_service", "net_raw",
         "sys_chroot", "mknod", "audit_write", "setfcap")  # fmt: skip # the capabilities of a container that requests none
WAIT_S = 30.0
ATTEMPTS = 2  # a container that ends is restarted; here only once


@dataclass
class Container:
    """The state of a container: whether it runs, how often it was restarted, its user, and why it does not run."""

    name: str
    running: bool = False
    restarts: int = 0
    uid: int | None = None
    why: str = "not started"


@dataclass
class Sight:
    """The report of the tracer: the processes that it sees, the engine and its library, whether it has BTF and tracefs."""

    processes: int | None = None
    engine: str | None = None
    btf: bool | None = None
    tracefs: bool | None = None
    lines: list[str] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """Return why the tracer could not continue: its first error, or its last line."""
        complaints = [line for line in self.lines if line.startswith(("ERROR", "cannot", "blind", "no "))]
        return (complaints or self.lines[-1:] or ["it printed nothing"])[0]

    def read(self, line: str) -> None:
        """Read one line of sidecar.sh's output."""
        key, _, value = line.partition(" ")
        if key == "processes" and value.isdecimal():
            self.processes = int(value)
        elif key == "engine":
            self.engine = value[:500]
        elif key in ("btf", "tracefs"):
            setattr(self, key, value == "yes")
        elif line and not line.startswith("{") and "RLIMIT_MEMLOCK" not in line:
            self.lines = [*self.lines, line[:200]][-20:]


def find_reason() -> str | None:
    """Return the reason why no pod can be played here, or None if a trial succeeded."""
    for program in PROGRAMS:
        if _find_program(program) is None:
            return f"{program} is missing: playing a pod needs Linux and util-linux"
    mounting = "mount -t proc none /proc && mount -t tmpfs none /tmp"
    check = ["unshare", *_user_words(), "--mount", "--pid", "--fork", "sh", "-c", mounting]
    process = subprocess.run(check, capture_output=True, text=True, timeout=20, check=False)
    words = process.stderr.strip().splitlines()
    return f"namespaces are refused here: {words[0][:160] if words else process.returncode}" if process.returncode else None


def _find_program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def _user_words() -> list[str]:
    return [] if os.geteuid() == 0 else ["--user", "--map-root-user"]


def find_refusal(text: str) -> str | None:
    """Return the reason why a pod would not start, or None if it starts.

    Either the API server refuses its manifest, or the scheduler leaves it waiting.
    """
    try:
        objects = manifests.read(text)
    except ValueError as error:
        return f"refused: {error}"
    pod = policies.find_pod(objects)
    if not pod:
        return "refused: the file has no Pod, or more than one"
    for box in manifests.containers(pod):
        if not manifests.ports_are_numbers(box):
            return f"refused: {box.get('name')}: containerPort has to be a number"
    spec = manifests.mapping(pod, "spec")
    if spec.get("hostPID") and policies.shares_processes(pod):
        return "refused: hostPID and shareProcessNamespace cannot both be true"
    if refusals := list(manifests.ask_schemas(objects)):
        return f"refused: {refusals[0]}"
    if (gpu_count := policies.count_gpus(pod)) > policies.NODE_GPUS:
        return f"waiting: the pod asks for {gpu_count} GPUs, but the node has {policies.NODE_GPUS}: 0/1 nodes are available"
    missing = {policies.ENGINE, policies.TRACER} - {str(box.get("name")) for box in manifests.containers(pod)}
    return f"refused: there is no container {min(missing)}" if missing else None


class Pod:
    """The namespaces of a pod. Use it with `with`: nothing remains afterwards, even if this process is killed."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self.user_played = os.geteuid() == 0

    def __enter__(self) -> Pod:  # noqa: PYI034 (Self is newer than Python 3.10)
        # The pod's first process ends with its input, which ends with this process; the kernel then ends all others.
        first = "echo ready; exec cat >/dev/null"
        words = ["unshare", *_user_words(), "--pid", "--ipc", "--uts", "--fork", "--kill-child", "sh", "-c", first]
        self._first = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._first.stdout is not None
        if self._first.stdout.readline() != "ready\n":
            self.__exit__()
            raise RuntimeError("the namespaces of the pod could not be created")
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._first.stdin is not None
        assert self._first.stdout is not None
        with suppress(OSError):
            self._first.stdin.close()
        self._first.stdout.close()
        try:
            self._first.wait(timeout=WAIT_S)
        except subprocess.TimeoutExpired:  # a process of the pod has ended, and its parent does not wait for it
            self._first.kill()
            self._first.wait()

    def enter(self, name: str, places: Sequence[tuple[str, str, bool]] = ()) -> list[str]:
        """Return the command prefix that starts a container.

        `places`: source, path in the container, and whether it is read-only.
        """
        at = f"/proc/{self._first.pid}/ns"
        user = [] if os.geteuid() == 0 else [f"--user={at}/user", "--preserve-credentials"]
        spaces = [f"--ipc={at}/ipc", f"--uts={at}/uts"]
        process_options = []
        if not manifests.mapping(self.manifest, "spec").get("hostPID"):
            spaces.append(f"--pid={at}/pid_for_children")
            process_options = [] if policies.shares_processes(self.manifest) else ["--pid", "--fork"]
        uid = policies.user_of(self.manifest, name) or 0
        binds = [f"{source}={path}={'ro' if read_only else 'rw'}" for source, path, read_only in places]
        container = ["sh", str(HERE / "container.sh"), _find_folder(binds), str(uid if self.user_played else 0)]
        return [
            "nsenter",
            *user,
            *spaces,
            "--",
            "unshare",
            "--mount",
            *process_options,
            *container,
            self._capabilities(name),
            *binds,
            "--",
        ]

    def _capabilities(self, name: str) -> str:
        """Return a container's capabilities in setpriv's notation. All are dropped except those in the manifest."""
        context = manifests.mapping(policies.container(self.manifest, name), "securityContext")
        if context.get("privileged"):
            return "+all"
        dropped = manifests.mapping(context, "capabilities").get("drop")
        usual = set() if isinstance(dropped, list) and "ALL" in dropped else set(USUAL)
        supported = set(subprocess.run(["setpriv", "--list-caps"], capture_output=True, text=True, check=True).stdout.split())
        requested = {capability.lower() for capability in policies.capabilities(self.manifest, name)}
        if "all" in requested:
            return "+all"
        return ",".join(["-all", *(f"+{capability}" for capability in sorted((usual | requested) & supported))])

    def node_places(self, name: str) -> list[tuple[str, str, bool]]:
        """Return the node's folders and files for a tracer that the container mounts and this computer has."""
        mounted = policies.mounts(self.manifest, name).items()
        return [(source, path, read_only) for path, (source, read_only) in mounted
                if source in (policies.BTF, policies.TYPES, policies.TRACEFS) and Path(source).exists()
                and path.startswith("/") and ".." not in path and "=" not in path]  # fmt: skip


def _find_folder(bound: Sequence[str]) -> str:
    """Return a folder without bind-mounted folders below it, on which a container's root is mounted."""
    for name in ("/mnt", "/media", "/srv", "/opt"):
        if Path(name).is_dir() and not any(place.startswith(f"{name}/") for place in bound):
            return name
    return "/tmp"


@dataclass
class Play:
    """The result for a pod: its containers, the tracer's report, the calls in the first trace, and the engine's ledger."""

    engine: Container
    tracer: Container
    sight: Sight = field(default_factory=Sight)
    calls: dict[str, int] | None = None
    ledger: dict[str, int] | None = None


def play(manifest: Mapping[str, Any], tracer: tracers.Tracer, prompt: int, tokens: int) -> Play:
    """Start both containers, send one request to the engine, and return its calls, counted from the tracer's container.

    The tracer `preload` counts inside the engine; the tracer's container then only looks for the engine.
    """
    result = Play(Container(policies.ENGINE), Container(policies.TRACER))
    folder = stand_in.build()
    inner_tracer = tracer if tracer.name == "preload" else None
    with Pod(manifest) as pod:
        prefix = pod.enter(policies.ENGINE, [(str(folder), str(folder), True)])
        try:
            with stand_in.Engine(prefix=prefix, tracer=inner_tracer, folder=folder) as engine:
                engine.load()
                result.engine.running, result.engine.why = True, ""
                result.engine.uid = (policies.user_of(manifest, policies.ENGINE) or 0) if pod.user_played else None
                _trace(pod, result, engine, inner_tracer, (prompt, tokens))
        except stand_in.EngineEnded as error:
            result.engine.running, result.engine.why = False, str(error)
    return result


def find_tracer(say: Callable[[str], None]) -> tracers.Tracer:
    """Return bpftrace if it works in a container, otherwise the tracer inside the engine. Raises NoTracer.

    In the second case, report the reason with `say`.
    """
    try:
        return tracers.find("bpftrace")
    except tracers.NoTracer as error:
        say(f"not used: {error}")
    return tracers.find("preload")


def _trace(
    pod: Pod, result: Play, engine: stand_in.Engine, inner_tracer: tracers.Tracer | None, request: tuple[int, int]
) -> None:
    earlier = engine.ledger()["calls"]
    with engine.serve() as url, _start_tracer(pod, result, look=inner_tracer is not None) as sidecar:
        if inner_tracer is not None and result.sight.engine:
            with tracers.trace(inner_tracer, engine) as trace:
                _ask(url, *request)
            result.calls = {api: calls.calls for api, calls in trace.calls.items()}
        elif sidecar is not None and result.tracer.running:
            result.calls = sidecar.count(lambda: _ask(url, *request))
    result.ledger = {api: count - earlier.get(api, 0) for api, count in engine.ledger()["calls"].items()}


def _ask(url: str, prompt: int, tokens: int) -> None:
    body = json.dumps({"prompt": list(range(prompt)), "max_tokens": tokens}).encode()
    request = urllib.request.Request(f"{url}/v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
        answer.read()


@contextmanager
def _start_tracer(pod: Pod, result: Play, *, look: bool) -> Iterator[Sidecar | None]:
    """Yield the tracer's container once it counts, and store its state in `result`. Restart it if it ends immediately."""
    places = [(str(HERE / "sidecar.sh"), f"{SCRIPT_FOLDER}/sidecar.sh", True), *pod.node_places(policies.TRACER)]
    words = [*pod.enter(policies.TRACER, places), "sh", f"{SCRIPT_FOLDER}/sidecar.sh", "1", *(["look"] if look else [])]
    for attempt in range(ATTEMPTS):
        sight = Sight()
        with Sidecar(words, sight) as sidecar:
            code = sidecar.wait_until_counting()
            result.sight = sight
            result.tracer.restarts = attempt
            if code is None or (look and code == 0):
                result.tracer.running, result.tracer.why = True, ""
                result.tracer.uid = (policies.user_of(pod.manifest, policies.TRACER) or 0) if pod.user_played else None
                yield sidecar
                return
            result.tracer.why = f"exit {code}: {sight.reason}"
    yield None


class Sidecar:
    """Run sidecar.sh in its container and read its output line by line. The container ends when the block ends."""

    def __init__(self, words: Sequence[str], sight: Sight) -> None:
        self._words, self._sight = words, sight
        self._counts: dict[str, int] = {}
        self._rest = b""

    def __enter__(self) -> Sidecar:  # noqa: PYI034 (Self is newer than Python 3.10)
        self._process = subprocess.Popen(
            self._words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return self

    def __exit__(self, *_error: object) -> None:
        # Killing it here would leave a child in the pod that no process waits for, and the pod waits for all of them. So its
        # output is closed, and its next line ends it.
        assert self._process.stdout is not None
        self._process.stdout.close()
        try:
            self._process.wait(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait_until_counting(self) -> int | None:
        """Return None once the tracer has printed counts, or its exit code if it ends before that."""
        return None if self._read_until_counted() else self._process.wait()

    def count(self, work: Callable[[], None]) -> dict[str, int]:
        """Return the calls that were made while `work` ran, by name. Raises tracers.TracerFailed if the tracer ends."""
        start = self._read_counts()
        work()
        self._read_counts()  # these may have been printed before the work was done
        end = self._read_counts()
        return {api: count - start.get(api, 0) for api, count in end.items() if count > start.get(api, 0)}

    def _read_counts(self) -> dict[str, int]:
        if not self._read_until_counted():
            raise tracers.TracerFailed(f"the tracer ended with {self._process.wait()}: {self._sight.reason}")
        return dict(self._counts)

    def _read_until_counted(self) -> bool:
        assert self._process.stdout is not None
        ends = time.monotonic() + WAIT_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                line, newline, remainder = self._rest.partition(b"\n")
                if newline:
                    self._rest = remainder
                    if self._take(line.decode(errors="replace")):
                        return True
                    continue
                if not selector.select(max(0.0, ends - time.monotonic())):
                    raise tracers.TracerFailed(f"the tracer printed nothing for {WAIT_S:g} s")
                chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                if not chunk:
                    return False
                self._rest += chunk

    def _take(self, line: str) -> bool:
        """Return whether a line marks the end of one set of counts."""
        self._sight.read(line)
        record = read_record(line)
        if record.get("type") == "map" and isinstance(record.get("data"), dict):
            calls = record["data"].get("@calls")
            self._counts = {str(api): int(count) for api, count in (calls or {}).items()}
        return record.get("type") == "printf" and record.get("data") == "counted\n"


def read_record(line: str) -> dict[str, Any]:
    """Return one line of bpftrace's JSON, or an empty mapping if the line is not JSON."""
    try:
        record = json.loads(line) if line.startswith("{") else {}
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
