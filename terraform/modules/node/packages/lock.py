"""Writes transformers.txt and vllm.txt anew: what a node installs, each package by its version, all wheels by their checksum.

Run by `make lock`; needs uv and pip. EC2 takes 16 KB for all that a node is told at its first boot, which is too little for a
checksum a package. So there is one for all: the SHA-256 of the sorted SHA-256 sums of the wheels that pip chooses on the
course's images (x86-64, glibc 2.39), a line for each Python.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PYTHONS = ("3.12", "3.13")  # those of the images; resolved for the last, which has fewer wheels
GLIBC = 39
CONSTRAINTS = HERE.parents[3] / "constraints.txt"  # the transformers that was tried here
# The first goes into the image's own environment, whose torch stays; the second is all of an environment of its own. Options
# change between minor versions of vLLM.
LISTS = {"transformers": ["transformers", "psutil", "nvidia-ml-py", f"--constraint {CONSTRAINTS}"], "vllm": ["vllm==0.32.0"]}


def resolve(wanted: list[str]) -> list[str]:
    """All that is needed for it, a line `name==version` each."""
    command = [
        "uv", "pip", "compile", "--quiet", "--no-python-downloads", "--only-binary=:all:", f"--python-version={PYTHONS[-1]}",
        f"--python-platform=x86_64-manylinux_2_{GLIBC}", "--no-annotate", "--no-header", "--no-emit-index-url",
        "--no-emit-find-links", "-",
    ]  # fmt: skip
    return subprocess.run(command, input="\n".join(wanted), text=True, stdout=subprocess.PIPE, check=True).stdout.split()


def checksum(lines: list[str], python: str) -> str:
    """Of the wheels that pip chooses for this Python."""
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in range(GLIBC, 4, -1)]
    platforms += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    with tempfile.TemporaryDirectory() as folder:
        listed, report = Path(folder, "list.txt"), Path(folder, "report.json")
        listed.write_text("\n".join(lines), encoding="utf-8")
        command = [
            sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps",
            "--only-binary=:all:", f"--python-version={python}", "--implementation=cp",
            *(f"--platform={name}" for name in platforms),
            f"--target={folder}/target", f"--requirement={listed}", f"--report={report}",
        ]  # fmt: skip
        subprocess.run(command, check=True)
        chosen = json.loads(report.read_text(encoding="utf-8"))["install"]
    sums = sorted(wheel["download_info"]["archive_info"]["hashes"]["sha256"] for wheel in chosen)
    return hashlib.sha256("".join(f"{digest}\n" for digest in sums).encode()).hexdigest()


def main() -> None:
    """Write both lists."""
    for name, wanted in LISTS.items():
        lines = resolve(wanted)
        sums = [f"# {python} {checksum(lines, python)}" for python in PYTHONS]
        (HERE / f"{name}.txt").write_text("\n".join([*sums, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
