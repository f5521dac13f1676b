"""Write transformers.txt and vllm.txt again: the packages that a node installs, with their versions, and one checksum for all
wheels.

Run by `make lock`; needs uv and pip. EC2 accepts 16 KB of data for a node's first boot, too little for a checksum of each
package. So there is one checksum for each Python: the SHA-256 of the sorted SHA-256 sums of the wheels that pip chooses on the
course's images (x86-64, glibc 2.39).
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PYTHONS = ("3.12", "3.13")  # the images' Pythons; versions are resolved for the last one, which has fewer wheels
GLIBC = 39
CONSTRAINTS = HERE.parents[3] / "constraints.txt"  # the version of transformers that was tested here
# The first list goes into the image's environment, whose torch stays; the second fills a separate environment. vLLM is pinned,
# because its options change between minor versions.
LISTS = {"transformers": ["transformers", "psutil", "nvidia-ml-py", f"--constraint {CONSTRAINTS}"], "vllm": ["vllm==0.32.0"]}


def resolve(wanted: list[str]) -> list[str]:
    """Return everything that these packages need, one line `name==version` each."""
    command = [
        "uv", "pip", "compile", "--quiet", "--no-python-downloads", "--only-binary=:all:", f"--python-version={PYTHONS[-1]}",
        f"--python-platform=x86_64-manylinux_2_{GLIBC}", "--no-annotate", "--no-header", "--no-emit-index-url",
        "--no-emit-find-links", "-",
    ]  # fmt: skip
    return subprocess.run(command, input="\n".join(wanted), text=True, stdout=subprocess.PIPE, check=True).stdout.split()


def checksum(lines: list[str], python: str) -> str:
    """Return the checksum of the wheels that pip chooses for this Python."""
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
