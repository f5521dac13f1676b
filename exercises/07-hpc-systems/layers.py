"""An image of several layers: its files, those that the kernel shows, and those that my_layers.py lists as shown."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

WHITEOUT = ".wh."
IMAGE = (  # an example: the steps of an image, the lowest first, and the size of each file in MB
    ("FROM", {"/usr/bin/python3": 30, "/opt/venv/lib/numpy.so": 60, "/opt/venv/lib/torch": 1}),
    ("RUN pip install torch",
     {"/opt/venv/lib/torch/core.so": 800, "/opt/venv/lib/torch/old.so": 90, "/root/.cache/pip/torch.whl": 850}),
    ("COPY . /course", {"/course/hello_gpu.py": 1, "/course/.token": 1, "/course/data/train.npz": 400, "/course/data.txt": 1}),
    ("RUN rm -r /course/data /course/.token /root/.cache/pip",
     {"/course/.wh.data": 0, "/course/.wh..token": 0, "/root/.cache/.wh.pip": 0}),
    ("RUN pip install --force-reinstall torch", {"/opt/venv/lib/torch/.wh..wh..opq": 0, "/opt/venv/lib/torch/core.so": 820}),
    ("COPY hello_gpu.py data/small.npz", {"/course/hello_gpu.py": 1, "/course/data/small.npz": 2}),
)  # fmt: skip
MOUNT = r"""
import json, os, pathlib, subprocess, sys
layers = json.loads(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "none", "/tmp"], check=True)
os.chdir("/tmp")
for number, paths in enumerate(layers):
    root = pathlib.Path(str(number))
    root.mkdir()
    removed = []
    for path in paths:
        place = root / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.name.startswith(".wh."):
            removed.append(place)
        else:
            place.write_text(str(number))
    for place in removed:
        hidden = place.parent if place.name == ".wh..wh..opq" else place.with_name(place.name[4:])
        if hidden.is_dir():
            os.setxattr(hidden, "user.overlay.opaque", b"y")
        elif not hidden.exists():
            os.mknod(hidden, 0o20000, 0)
os.mkdir("all")
lower = ":".join(str(number) for number in reversed(range(len(layers))))
subprocess.run(["mount", "-t", "overlay", "-o", f"lowerdir={lower},userxattr", "none", "all"], check=True)
files = [path for path in pathlib.Path("all").rglob("*") if path.is_file()]
print(json.dumps({f"/{path.relative_to('all')}": int(path.read_text()) for path in files}))
"""  # the kernel marks a removed file by a device with the numbers 0/0, and a folder that hides the lower ones by an attribute


CHANGE = r"""
import json, os, pathlib, subprocess
subprocess.run(["mount", "-t", "tmpfs", "none", "/tmp"], check=True)
os.chdir("/tmp")
for name in ("lower", "upper", "work", "all"):
    os.mkdir(name)
file = pathlib.Path("lower/weights.bin")
file.write_bytes(os.urandom(4 << 20))
file.chmod(0o666)
places = "lowerdir=lower,upperdir=upper,workdir=work,userxattr"
subprocess.run(["mount", "-t", "overlay", "-o", places, "none", "all"], check=True)
os.chmod("all/weights.bin", 0o644)
print(json.dumps(512 * os.stat("upper/weights.bin").st_blocks / file.stat().st_size))
"""  # the upper folder is the new layer; blocks count what it stores, while a size may contain holes


def list_paths() -> list[list[str]]:
    """Return the paths of each layer of IMAGE, as my_layers.py receives them."""
    return [sorted(files) for _, files in IMAGE]


def see_by_kernel(layers: Sequence[Sequence[str]]) -> tuple[dict[str, int] | None, str | None]:
    """Return the files that the kernel's overlayfs shows of these layers, each with the number of its layer; or None and the
    reason if overlayfs or namespaces are refused here."""
    return _run_inside(MOUNT, json.dumps(layers))


def measure_change() -> tuple[float | None, str | None]:
    """Return the size of a layer that changes only the permissions of a file, divided by the size of the file; or None and the
    reason if overlayfs or namespaces are refused here."""
    return _run_inside(CHANGE)


def _run_inside(program: str, *arguments: str) -> tuple[Any, str | None]:
    """Return the output of a program with its own mounts, or None and the reason if it fails."""
    words = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", program, *arguments]
    try:
        process = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"unshare: {error}"[:160]
    if process.returncode:
        return None, (process.stderr.strip().splitlines() or [f"exit {process.returncode}"])[-1][:160]
    return json.loads(process.stdout), None


def see_by_part(_world: object, layers: list[list[str]]) -> dict[str, int]:
    """Return the learner's files with their layers. Raises an error if they are not a dictionary of paths and numbers."""
    answer = importlib.import_module("my_layers").see(layers)
    return {str(path): int(number) for path, number in answer.items()}


def sum_sizes(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each layer of IMAGE the MB that are pulled, and the MB of them that a program sees.

    The kernel and the learner each say what a program sees. `rows` are those of `compare`.
    """
    sums = []
    for number, (step, _) in enumerate(IMAGE):
        files = [row for row in rows if row["layer"] == number and row["step"]]
        seen, yours = (
            None if any(row[who] is None for row in files) else sum(row["mb"] for row in files if row[who])
            for who in ("kernel", "yours")
        )
        name = f"{number} {' '.join(step.split()[:2])}"
        sums.append({"layer": name, "pulled_mb": sum(row["mb"] for row in files), "seen_mb": seen, "yours_mb": yours})
    return sums


def compare(kernel: dict[str, int] | None, yours: dict[str, int] | None) -> list[dict[str, Any]]:
    """Return a row for each file of each layer of IMAGE. It says whether a program sees the file, according to the kernel and
    according to the learner. The last rows are files that only the learner lists."""
    rows = [
        {"layer": number, "step": step, "file": file, "mb": size,
         "kernel": None if kernel is None else kernel.get(file) == number,
         "yours": None if yours is None else yours.get(file) == number}
        for number, (step, files) in enumerate(IMAGE) for file, size in files.items()
        if not file.rpartition("/")[2].startswith(WHITEOUT)
    ]  # fmt: skip
    listed = {(row["file"], row["layer"]) for row in rows}
    rows += [
        {"layer": number, "step": "", "file": file[:60], "mb": None, "kernel": False, "yours": True}
        for file, number in list((yours or {}).items())[:20] if (file, number) not in listed
    ]  # fmt: skip
    return rows
