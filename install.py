"""Install this checkout into the Python that runs this file: `python install.py EXTRAS [options of pip install]`.

`make demo` and `make test` call it with the extras `local` and `local,dev`. Everything but torch comes in the versions of
requirements.lock, and pip refuses a file without the checksum there; the tools of `dev` come by the ranges of pyproject.toml.
torch is not in that list, for its builds have checksums of their own, and which one comes is decided here. On Linux
the build on PyPI brings CUDA, several gigabytes that a machine without an NVIDIA card cannot use; PyTorch's own index has a CPU
build. That index is asked first, for a few seconds at most. Where it does not answer, the version in constraints.txt comes from
the index that pip uses anyway. GPUCOURSE_TORCH_INDEX names another index of CPU builds, for example a mirror.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shlex
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import urllib.request
from http.client import HTTPException
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CONSTRAINTS = HERE / "constraints.txt"
LOCK = HERE / "requirements.lock"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PATIENCE_S = 8.0
MAX_PAGE_BYTES = 32 * 2**20


def main(arguments: list[str]) -> int:
    """Say which torch comes and install everything; pip's exit code, 2 for wrong arguments, 3 without pip."""
    if not arguments or arguments[0].startswith("-"):
        sys.stderr.write("usage: python install.py local[,dev] [options of pip install]\n")
        return 2
    if package := find_package(arguments):
        sys.stderr.write(
            f"{package} is no option of pip: pip would install a package of that name. For an extra of gpucourse type\n"
            f"python install.py {arguments[0].rstrip(',')},{package}\n"
        )
        return 2
    if importlib.util.find_spec("pip") is None:
        sys.stderr.write(f"{sys.executable} has no pip: {sys.executable} -m ensurepip\n")
        return 3
    extras, *options = arguments
    index, sentence = choose_torch(os.environ.get("GPUCOURSE_TORCH_INDEX", CPU_INDEX))
    if code := install_locked(options):
        other_versions = [sys.executable, "-m", "pip", "install", *index, "--editable", f"{HERE}[{extras}]"]
        sys.stderr.write(
            f"{LOCK.name} could not be installed: pip says why above. If a checksum differs, the\n"
            f"file is not the listed one: do not install it. If this system has no such package, this takes other versions:\n"
            f"{shlex.join(other_versions)}\n"
        )
        return code
    sys.stdout.write(f"torch: {sentence}\n")
    sys.stdout.flush()
    words = ["--constraint", str(CONSTRAINTS), *index, "--no-build-isolation", "--editable", f"{HERE}[{extras}]"]
    return run_pip(*words, *options)


def find_package(arguments: list[str]) -> str | None:
    """Return the first word that pip may take for a package: an extra of the project, wherever it stands (`-q dev`), or a word
    that is no option and does not follow one."""
    for before, word in pairwise(arguments):
        may_be_value = before.startswith("-") and "=" not in before
        if not word.startswith("-") and (not may_be_value or word.partition(",")[0] in list_extras()):
            return word
    return None


def list_extras() -> set[str]:
    """Read the names of the extras in pyproject.toml."""
    import tomllib  # not at the top: a Python that is too old reads pip's sentence about it

    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    return set(project.get("optional-dependencies", {}))


def run_pip(*words: str) -> int:
    """Run `pip install` in this Python, its progress on the screen; its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *words], check=False
    ).returncode


def install_locked(options: list[str]) -> int:
    """Install what requirements.lock names; pip's exit code. What builds a package is in the list, too, and comes first: pip
    fetches nothing else for a build."""
    builder = re.search(r"^setuptools==.*?(?=^\S)", LOCK.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if builder is not None:
        with tempfile.TemporaryDirectory() as folder:
            first = Path(folder) / "first.txt"
            first.write_text(builder[0], encoding="utf-8")
            if code := run_pip("--require-hashes", "--only-binary", ":all:", "--requirement", str(first), *options):
                return code
    return run_pip("--require-hashes", "--no-build-isolation", "--requirement", str(LOCK), *options)


def choose_torch(index: str, patience_s: float = PATIENCE_S) -> tuple[list[str], str]:
    """Return pip's options for this machine's build of torch, and a sentence: which build comes, from where, its size."""
    if platform.system() != "Linux":
        return [], "the build for this system, which has no CUDA; pip names its size"
    if has_nvidia_card():
        return [], "this machine has an NVIDIA card, so pip downloads the build with CUDA: several gigabytes"
    version = pinned_version("torch")
    try:
        size = find_cpu_build(index, version, patience_s)
    except (OSError, ValueError, HTTPException) as error:
        return [], (
            f"{index} cannot give its CPU build ({getattr(error, 'reason', error)}).\n"
            "       pip's own index is used instead. If pip downloads packages named nvidia-*, that is a build with CUDA:\n"
            "       several gigabytes. Ctrl-C stops it; the same command tries again"
        )
    return ["--extra-index-url", index], f"the CPU build of {version} from {index}, {size}"


def has_nvidia_card() -> bool:
    """Whether the driver of an NVIDIA card runs here."""
    if Path("/proc/driver/nvidia").exists() or Path("/dev/nvidia0").exists():
        return True
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def pinned_version(package: str) -> str:
    """Return the version of a package in constraints.txt. Raises ValueError if there is none."""
    match = re.search(rf"^{package}==([\w.]+)$", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise ValueError(f"{CONSTRAINTS.name} does not pin {package}")
    return match[1]


def find_cpu_build(index: str, version: str, patience_s: float) -> str:
    """Find the CPU build that an index has for this Python and this processor; its size in words.

    Raises OSError or HTTPException where the index does not answer within `patience_s` seconds, ValueError where it has no such
    build.
    """
    answers: list[str | Exception] = []

    def ask() -> None:
        try:
            answers.append(_ask_index(index, version, patience_s))
        except (OSError, ValueError, HTTPException) as error:
            answers.append(error)

    # A thread, because a name server that does not answer holds a connection up longer than its time-out says.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience_s)
    answer = answers[0] if answers else TimeoutError(f"no answer in {patience_s:g} s")
    if isinstance(answer, Exception):
        raise answer
    return answer


def _ask_index(index: str, version: str, patience_s: float) -> str:
    page = index.rstrip("/") + "/torch/"
    with _open(urllib.request.Request(page), patience_s) as answer:  # noqa: S310  # the owner of this machine names the index
        text = answer.read(MAX_PAGE_BYTES).decode("utf-8", "replace")
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    name = rf"torch-{re.escape(version)}(?:\+|%2B)cpu-{tag}-{tag}-\w*{platform.machine()}\.whl"
    link = re.search(rf'href="([^"#]*{name})', text)
    if link is None:
        raise ValueError(f"it lists no torch {version}+cpu for {tag} on {platform.machine()}")
    wheel = urllib.parse.urljoin(page, link[1])
    with _open(urllib.request.Request(wheel, method="HEAD"), patience_s) as answer:  # noqa: S310  # as above
        size = answer.headers.get("Content-Length", "")
    return f"{int(size) / 1e6:,.0f} MB" if size.isdecimal() else "of a size that the index does not say"


def _open(request: urllib.request.Request, patience_s: float) -> Any:
    trust = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
    return urllib.request.urlopen(request, timeout=patience_s, context=trust)  # noqa: S310  # as above


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
