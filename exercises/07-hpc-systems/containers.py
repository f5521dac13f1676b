"""Run programs in the container engines of this computer, and look at what a program sees from inside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ENGINES = ("bare", "namespaces", "charliecloud", "docker", "podman", "apptainer")
LIMIT_S = 120.0
IMAGE = "course-1.1"  # which the learner builds from my_dockerfile.txt
REAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "overlay", "nfs", "nfs4", "9p", "virtiofs", "f2fs")
LOOK = """
echo "hostname $(cat /proc/sys/kernel/hostname)"
echo "pid $$"
echo "uid $(id -u)"
for place in /proc/[0-9]*; do echo "process ${place#/proc/}"; done
if (: >"/tmp/.probe$$") 2>&-; then rm -f "/tmp/.probe$$"; echo "own_tmp yes"; fi
for place in /dev/nvidia*; do [ -e "$place" ] && echo "gpu $place"; done
[ -r /sys/fs/cgroup/memory.max ] && echo "memory_limit $(cat /sys/fs/cgroup/memory.max)"
while read -r line; do echo "mount $line"; done </proc/self/mounts
"""  # in a shell, because Python may be in a folder that a container does not see
PRODUCT = """
import time, torch
torch.manual_seed(0); torch.set_num_threads(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
a = torch.randint(-8, 8, (256, 256), device=device).float()
times = []
for _ in range(50):
    began = time.perf_counter(); b = a @ a; value = b.sum().item(); times.append(time.perf_counter() - began)
print(sorted(times)[25] * 1e3, value, device)
"""


def _environment() -> dict[str, str]:
    """Return the environment with USER and HOME, which Charliecloud needs."""
    return os.environ | {"USER": os.environ.get("USER", "learner"), "HOME": os.environ.get("HOME", "/")}


def need_linux() -> None:
    """Exit with a message if there is nothing to measure, as on macOS."""
    if sys.platform != "linux":
        sys.exit(
            "containers consist of namespaces, mounts and /proc, which only Linux has: run 7.4 on a Linux machine, after "
            "gpucourse deploy 7 --target hosts, or --target aws"
        )


def find_reason(engine: str) -> str | None:
    """Return the reason why an engine cannot be used here, or None if it can."""
    program = {"namespaces": "unshare", "charliecloud": "ch-run"}.get(engine, engine)
    if engine == "bare":
        return None
    if shutil.which(program) is None:
        return f"{program} is not installed"
    check = {
        "namespaces": ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "true"],
        "charliecloud": ["ch-run", "--version"],
        "docker": ["docker", "image", "inspect", IMAGE],
        "podman": ["podman", "image", "inspect", IMAGE],
        "apptainer": ["apptainer", "--version"],
    }[engine]
    try:
        process = subprocess.run(check, capture_output=True, text=True, timeout=20, check=False, env=_environment())
    except (OSError, subprocess.TimeoutExpired):
        return f"{program} does not answer"
    words = (process.stderr or process.stdout).strip().splitlines()
    if process.returncode == 0:
        return None
    if "daemon" in process.stderr.lower():
        return f"{program} has no daemon"
    if engine in ("docker", "podman"):
        return f"there is no image {IMAGE}: {engine} build -t {IMAGE} -f my_dockerfile.txt ."
    return f"{program} is refused here: {words[0][:120] if words else process.returncode}"


@contextmanager
def open_engine(engine: str, container: Path, gpu: bool) -> Iterator[list[str]]:
    """Yield the words to put before a command so that it runs in that engine. Remove temporary files afterwards."""
    with tempfile.TemporaryDirectory(prefix="image-") as folder:
        root = Path(folder)
        places = ["/usr", *_python_folders()]
        if engine == "charliecloud":
            places += _make_image(root, places)
        binds = [word for place in places for word in ("-b", f"{place}:{place}")]
        yield {
            "bare": [],
            "namespaces": ["sh", str(container)],
            "charliecloud": ["ch-run", *binds, str(root), "--"],
            "docker": ["docker", "run", "--rm", *(["--gpus", "all"] if gpu else []), IMAGE],
            "podman": ["podman", "run", "--rm", *(["--device", "nvidia.com/gpu=all"] if gpu else []), IMAGE],
            "apptainer": ["apptainer", "exec", *(["--nv"] if gpu else []), IMAGE + ".sif"],
        }[engine]


def _make_image(root: Path, places: Sequence[str]) -> list[str]:
    """Turn a folder into an image without files, into which the host's files can be bound.

    Create the links of its root, and return the folders that are not links and have to be bound, too.
    """
    extra = []
    for name in ("bin", "sbin", "lib", "lib64"):
        host_path = Path("/") / name
        if host_path.is_symlink():
            (root / name).symlink_to(host_path.readlink())
        elif host_path.is_dir():
            extra.append(str(host_path))
    for place in [*places, *extra, "/dev", "/proc", "/sys", "/tmp", "/etc"]:
        (root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (root / "etc" / name).touch()
    return extra


def _python_folders() -> list[str]:
    """Return the folders of this Python and of its packages.

    Folders inside another of them, or below /usr or /tmp, are left out, because the container has them anyway.
    """
    places = {str(Path(path).resolve()) for path in (sys.prefix, sys.base_prefix, *sys.path[1:]) if Path(path).is_dir()}
    return sorted(
        place
        for place in places
        if not place.startswith(("/usr/", "/tmp/")) and not any(place.startswith(f"{parent}/") for parent in places)
    )


def _call(words: Sequence[str]) -> tuple[str, str | None]:
    """Return the output of a command, and the last line of its errors if it failed (otherwise None)."""
    try:
        process = subprocess.run(
            words, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd="/", env=_environment()
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "", f"no answer within {LIMIT_S:.0f} s"
    except OSError as error:
        return "", str(error.strerror)
    last = (process.stderr.strip().splitlines() or [f"exit {process.returncode}"])[-1][:160]
    return process.stdout, last if process.returncode else None


def run(prefix: Sequence[str], code: str) -> tuple[str, str | None]:
    """Return the output of a Python program in an engine, and the reason if it failed (otherwise None)."""
    python = "python" if prefix[:1] in (["docker"], ["podman"], ["apptainer"]) else sys.executable
    output, reason = _call([*prefix, python, "-c", code])
    return output, f"the container does not see {python}" if reason and "No such file" in reason else reason


def look(prefix: Sequence[str]) -> tuple[dict, str | None]:
    """Return the values that a shell prints in an engine, by name, and the reason if it fails (otherwise None)."""
    output, reason = _call([*prefix, "sh", "-c", LOOK])
    lines = [line.partition(" ")[::2] for line in output.splitlines()[:100_000]]
    values = dict(lines)
    if not {"hostname", "pid", "uid"} <= values.keys():
        return {}, reason or "a shell in it printed nothing"
    mounts = [words for kind, details in lines if kind == "mount" and len(words := details.split()) > 3]
    writable = {place for _, place, kind, flags, *_ in mounts if kind in REAL and "rw" in flags.split(",") and place != "/tmp"}
    return {
        "hostname": values["hostname"], "pid": int(values["pid"]), "uid": int(values["uid"]),
        "pids": sum(kind == "process" for kind, _ in lines), "own_tmp": "own_tmp" in values, "writable": sorted(writable)[:20],
        "gpus": sorted(details for kind, details in lines if kind == "gpu"), "memory_limit": values.get("memory_limit", ""),
        "injected": sorted({place for _, place, *_ in mounts if "nvidia" in place or "libcuda" in place})[:50],
    }, None  # fmt: skip


def repeat(prefix: Sequence[str], words: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the arguments that a command in an engine receives, and the reason if it failed (otherwise None)."""
    output, reason = _call([*prefix, "printf", "%s\\n", *words])
    return output.splitlines(), reason


def time_start(prefix: Sequence[str], repeats: int) -> float:
    """Return the median time in seconds from calling an engine to the end of `true` in it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        _call([*prefix, "true"])
        times.append(time.perf_counter() - start)
    return sorted(times)[repeats // 2]
