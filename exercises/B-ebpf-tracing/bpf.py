"""Run bpftrace as a child process: wait until its probes are attached, stop it, and read the maps that it prints as JSON."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from symbols import TracerFailed, name_address

READY = 'interval:ms:50 /@ready == 0/ { @ready = 1; printf("ready\\n"); }\n'
"""bpftrace prints "attached_probes" before the probes are attached, so a call right after that line is lost. This timer fires
only once they are attached."""
START_S, STOP_S, AGAIN_S, LOOK_S = 60.0, 60.0, 15.0, 0.5
NOISE = ("RLIMIT_MEMLOCK", "failed to detach", "uprobe_events", "Attaching ", "Lost ")
ADDRESS = re.compile(r"\b0x[0-9a-f]{4,16}\b")
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def find_reason(library: Path) -> str | None:
    """Return the reason why bpftrace cannot trace `library` here, or None if a trial run succeeded."""
    if sys.platform != "linux":
        return "bpftrace runs only on Linux"
    if shutil.which("bpftrace") is None:
        return "bpftrace is not installed (sudo apt-get install bpftrace)"
    if os.geteuid() != 0:
        return "bpftrace needs root"
    try:
        with run_bpftrace(f"uprobe:{quote(library)}:cudaMalloc {{ @calls = count(); }}"):
            pass
    except TracerFailed as error:
        return f"bpftrace is refused here: {str(error).partition('; ')[0].removeprefix('ERROR: ')}"
    return None


def quote(library: Path) -> str:
    """Return the path in quotes, because a bare space or colon would end it in a probe."""
    return json.dumps(str(library), ensure_ascii=False)


@contextmanager
def run_bpftrace(program: str, pid: int | None = None) -> Iterator[dict[str, Any]]:
    """Run a bpftrace program while the block runs, and yield a dictionary, which gets the program's maps when the block ends.

    `pid` is the process whose addresses are turned into function names, and must be alive until the block ends. It is not a
    reliable filter: while others probe the same file, probes may also fire for their processes. If the tracer sees the process
    through another namespace (a sidecar), pass no pid, and name the library as /proc/PID/root/LIBRARY.

    A map is a number, a dictionary by key ("a,b" for several keys), or a list of buckets with `min`, `max` and `count`.
    `errors` contains bpftrace's error messages. bpftrace runs without --unsafe, so a program cannot start other programs.

    Raises TracerFailed if bpftrace does not start or end, or if it lost calls.
    """
    maps: dict[str, Any] = {}
    command = ["bpftrace", "-f", "json", *(["-p", str(pid)] if pid else [])]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
        process = subprocess.Popen(
            [*command, "-e", f"{program}\n{READY}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints,
            env=dict(os.environ) | ({"BPFTRACE_NO_USER_SYMBOLS": "1"} if pid else {}), text=True, errors="replace",
            preexec_fn=make_end_with_parent(),  # noqa: PLW1509 (it only calls the kernel)
        )  # fmt: skip
        try:
            _wait_until_ready(process, complaints)
            yield maps
            output = _stop(process)
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        errors = _read_complaints(complaints)
    if process.returncode != 0:
        raise TracerFailed(errors or f"bpftrace ended with {process.returncode}")
    maps.update(read_maps(output))
    if pid:
        name = functools.lru_cache(maxsize=None)(functools.partial(name_address, pid))
        maps.update({key: put_names(value, name) for key, value in maps.items()})
    maps["errors"] = errors


def put_names(value: Any, name: Callable[[int], str]) -> Any:
    """Return a map with function names in place of addresses. The values of keys that become equal are added up.

    bpftrace could look up the names itself, but Debian's build then closes files that are not its own, among them other maps.
    """
    if isinstance(value, str):
        return ADDRESS.sub(lambda match: name(int(match[0], 16)), value)
    if not isinstance(value, dict):
        return value
    names_by_id: dict[str, Any] = {}
    for key, number in value.items():
        function = put_names(key, name)
        same = function in names_by_id and isinstance(number, int)
        names_by_id[function] = names_by_id[function] + number if same else put_names(number, name)
    return names_by_id


def make_end_with_parent() -> Callable[[], None]:
    """Return a function for a child process to call first, so that the kernel ends it if this process is killed."""
    library = ctypes.CDLL(None)  # loaded here, because nothing may be loaded after a fork

    def end_with_parent() -> None:
        library.prctl(DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)

    return end_with_parent


def _wait_until_ready(process: subprocess.Popen[str], complaints: IO[str]) -> None:
    """Return once the probes are attached. Raises TracerFailed with bpftrace's message."""
    ends = time.monotonic() + START_S
    assert process.stdout
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        lines = b""
        while b"ready" not in lines:
            if not selector.select(max(0.0, ends - time.monotonic())):
                raise TracerFailed(f"bpftrace did not attach its probes within {START_S:g} s")
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                process.wait()
                raise TracerFailed(_read_complaints(complaints) or f"bpftrace ended with {process.returncode}")
            lines += chunk


def _stop(process: subprocess.Popen[str]) -> str:
    """Stop bpftrace, and return its output.

    bpftrace notices a signal only while it waits for events, and loses a signal that arrives while it prints. Once it has begun
    to detach its probes, which takes a while, a second signal kills it. So the signal is sent while bpftrace waits and still
    handles it, and is repeated only if it must have been lost.
    """
    now = time.monotonic()
    ends, next_signal = now + STOP_S, now
    while (now := time.monotonic()) < ends:
        if now >= next_signal and _waits_for_events(process.pid):
            process.send_signal(signal.SIGINT)
            next_signal = now + AGAIN_S
        try:
            return process.communicate(timeout=LOOK_S)[0]
        except subprocess.TimeoutExpired:
            continue
    raise TracerFailed(f"bpftrace did not end within {STOP_S:g} s")


def _waits_for_events(pid: int) -> bool:
    """Return whether a process sleeps and has a handler for SIGINT. bpftrace removes its handler when it begins to end."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    takes = int(status.get("SigCgt", ["0"])[0], 16) >> (signal.SIGINT - 1) & 1
    return bool(takes) and status["State"][0] == "S"


def _read_complaints(complaints: IO[str]) -> str:
    """Return bpftrace's error messages in one line, without the messages that it always prints."""
    complaints.seek(0)
    lines = complaints.read(1 << 16).splitlines()
    return "; ".join(line.strip() for line in lines if line.strip() and not any(noise in line for noise in NOISE))[:400]


def read_maps(output: str) -> dict[str, Any]:
    """Return the maps from the lines of JSON that bpftrace prints at its end. Raises TracerFailed if it lost events."""
    maps: dict[str, Any] = {}
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        try:
            record: Mapping[str, Any] = json.loads(line)
        except ValueError:
            raise TracerFailed(f"bpftrace printed a line that is not JSON: {line[:100]}") from None
        if record["type"] in ("map", "hist", "lhist", "stats"):
            maps.update(record["data"])
        elif record["type"] == "lost_events":
            raise TracerFailed("bpftrace lost events: use fewer tokens")
    maps.pop("@ready", None)
    return maps
