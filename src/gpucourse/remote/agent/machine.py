"""Collect facts about this node: for a launch (`probe`), for the record of a run (`describe`), and before the machine becomes a
node (`look`).

For `look`, this file is sent alone, as a program.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import random
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

_ASK_S, _LOOK_S = 5.0, 20.0
_PORTS = 24
_GPU_FIELDS = ("index", "name", "uuid", "driver_version", "memory.total", "compute_cap")

# Importing `importlib.metadata` takes 40 ms of processor time, which a launch saves, since it needs no versions.
_INSTALLED = """
import importlib.util, json, sys
def version(name):
    try:
        import importlib.metadata
        return importlib.metadata.version(name) or ""
    except Exception: return ""
found = {}
for name in sys.argv[2:]:
    found[name] = None
    if importlib.util.find_spec(name) is not None:
        found[name] = version(name) if sys.argv[1] == "versions" else ""
print(json.dumps(found))
"""


def probe(request: dict[str, Any]) -> dict[str, Any]:
    """Return the facts about this node that a launch needs.

    `modules`: the modules that the node's Python can import, with their versions if `versions` is requested.
    `missing_programs`: the requested programs that are not on the PATH.
    `free_ports`: free ports in the requested range.
    """
    return {
        "python_version": platform.python_version(),
        "modules": find_installed(request["python"], request["modules"], versions=request["versions"]),
        "missing_programs": [name for name in request["programs"] if shutil.which(name) is None],
        "free_ports": free_ports(request["first_port"], request["last_port"], _PORTS),
        "cores": os.cpu_count() or 1,
        "clock": time.time(),
    }


def describe(python: str) -> dict[str, Any]:
    """Return a description of the machine and its software, for the run's record. torch is looked up, not imported."""
    os_name = _find_value("/etc/os-release", ("pretty_name=",), "=")
    cpu_name = _find_value("/proc/cpuinfo", ("model name", "hardware", "cpu model"), ":")
    return {
        "hostname": socket.gethostname(),
        "os": os_name or f"{platform.system()} {platform.mac_ver()[0] or platform.release()}",
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": cpu_name or platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": _memory_bytes(),
        "python": platform.python_version(),
        "python_path": python,
        "packages": {
            name: version
            for name, version in find_installed(python, ["torch", "numpy"], versions=True).items()
            if version is not None
        },
        "gpus": gpus(),
        "interfaces": interfaces(),
    }


def look() -> dict[str, Any]:
    """Return the facts that decide whether a machine can become a node, and the facts that distinguish it from other
    machines."""
    folder = os.path.realpath(os.path.expanduser("~"))
    room, place = os.statvfs(folder), os.stat(folder)
    gpu_lines = _run("nvidia-smi", "-L", timeout_s=_LOOK_S).splitlines()
    boot_id = ""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot_id = file.read().strip()
    return {
        "python": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "torch": importlib.util.find_spec("torch") is not None,
        "gpus": [line.split(" (UUID")[0].partition(": ")[2] for line in gpu_lines if line.startswith("GPU ")],
        "hostname": socket.gethostname(),
        "boot": boot_id,
        "folder": folder,
        "inode": place.st_ino,
        "device": place.st_dev,
        "disk_free_bytes": room.f_bavail * room.f_frsize,
        "addresses": interfaces(),
        "clock": time.time(),
        "login_node": _is_login_node(),
    }


def _is_login_node() -> bool:
    """Return whether this machine can submit jobs to a Slurm cluster that answers, but runs no jobs itself."""
    name = socket.gethostname().lower()
    nodes = _run("sinfo", "-h", "-a", "-N", "-o", "%n", timeout_s=_LOOK_S).lower().split()
    return bool(nodes) and name not in nodes and name.split(".")[0] not in nodes


def _run(*argv: str, timeout_s: float = _ASK_S) -> str:
    """Return the output of a program, or an empty string if it is missing, fails, or does not answer in time."""
    try:
        result = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=timeout_s, errors="replace", check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout if result.returncode == 0 else ""


def find_installed(python: str, modules: list[str], *, versions: bool) -> dict[str, str | None]:
    """Return the version of each top-level module that this Python finds, and None for each module that it does not find.

    Nothing is imported. Without `versions`, an empty string replaces each version.
    """
    argv = [python, "-c", _INSTALLED, "versions" if versions else "", *modules]
    result = subprocess.run(argv, capture_output=True, cwd="/", check=False) if modules else None
    if result is None or result.returncode != 0:
        return dict.fromkeys(modules)
    module_versions: dict[str, str | None] = json.loads(result.stdout.decode())
    return module_versions


def free_ports(first: int, last: int, count: int) -> list[int]:
    """Return up to `count` TCP ports in the range that are free on every address.

    They are chosen at random, so that runs that begin at the same moment rarely meet at the same port.
    """
    ports: list[int] = []
    for port in random.sample(range(first, last + 1), last + 1 - first):
        if len(ports) == count:
            break
        if all(_binds(family, port) for family in (socket.AF_INET, socket.AF_INET6)):
            ports.append(port)
    return ports


def gpus() -> list[dict[str, str]]:
    """Return nvidia-smi's report on each GPU, or an empty list if there is no GPU or nvidia-smi does not answer in time."""
    rows = _run("nvidia-smi", "--query-gpu=" + ",".join(_GPU_FIELDS), "--format=csv,noheader").splitlines()
    return [dict(zip(_GPU_FIELDS, (cell.strip() for cell in row.split(",")))) for row in rows]


def interfaces() -> dict[str, str]:
    """Return the IPv4 address of each network interface that has one (Linux)."""
    import fcntl
    import struct

    addresses: dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(sock, 0x8915, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue
            addresses[name] = socket.inet_ntoa(answer[20:24])
    return addresses


def _binds(family: int, port: int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(("", port))
            sock.listen(1)
    except OSError as error:
        import errno

        return family == socket.AF_INET6 and error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
    return True


def _find_value(path: str, names: tuple[str, ...], separator: str) -> str:
    """Return the value in the first line of the file that begins with one of the names, or an empty string."""
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.lower().startswith(names):
                return line.partition(separator)[2].strip().strip('"')
    return ""


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
