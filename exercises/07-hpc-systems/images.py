"""Find faults in a Dockerfile or an Apptainer definition by reading it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CUDA_OF_DRIVER = {525: (12, 0), 535: (12, 2), 550: (12, 4), 560: (12, 6), 570: (12, 8), 580: (13, 0), 590: (13, 1)}
"""The newest CUDA that a driver branch supports (NVIDIA, "CUDA Toolkit Release Notes", table of driver versions)."""
FIRST_TORCH_WITH_CUDA_13 = (2, 11)
"""Wheels of torch 2.10 on PyPI need the libraries of CUDA 12.8, and those of 2.11 the libraries of CUDA 13.0."""
SECRET = re.compile(
    r"\b\w*(TOKEN|SECRET|PASSWORD|API_?KEY|ACCESS_KEY)\b\s*[= ]\s*(?!\"\"|''|\"?\$\()\S+", re.IGNORECASE
)  # the output of a command, `$(cat /run/secrets/token)`, is not written in the file
DATA = re.compile(
    r"^\.?/?$|(^|/)(data|dataset|datasets|checkpoints)(/|$)|\.(tar|tar\.gz|zip|bin|pt|pth|ckpt|npz|h5|parquet|safetensors)$"
)
PIP = re.compile(r"\bpip[\d.]*\s+(?:-\S+\s+)*install\b([^&|;]*)")
INSTRUCTIONS = {
    "ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "ONBUILD", "RUN", "SHELL",
    "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}  # fmt: skip
PLAIN_BASE = re.compile(r"^(docker\.io/)?(library/)?(python|ubuntu|debian|nvidia/cuda|pytorch/pytorch)[:@]")
SYSTEM_USERS = {"nobody", "www-data", "daemon", "ubuntu"}  # ubuntu: in Ubuntu 24.04


@dataclass(frozen=True)
class Fault:
    """A fault: a word for its kind, its line, and the advice."""

    word: str
    line: int
    says: str


def newest_cuda(driver: str) -> tuple[int, int]:
    """Return the newest CUDA for a driver such as 580.126: the CUDA of the newest driver branch that is not newer than it."""
    branch = int(driver.partition(".")[0])
    branches = [number for number in CUDA_OF_DRIVER if number <= branch]
    return CUDA_OF_DRIVER[max(branches)] if branches else (11, 8)


def find_faults(text: str, driver: str) -> list[Fault]:
    """Return the faults of a Dockerfile or an Apptainer definition. At most 1,000 lines are read.

    The first lines show which of the two it is.
    """
    lines = list(enumerate(text.splitlines()[:1000], start=1))
    if any(re.match(r"\s*Bootstrap\s*:", line, re.IGNORECASE) for _, line in lines):
        return list(_check_definition(lines, driver))
    return list(_check_dockerfile(_join(lines), driver))


def without_comments(text: str) -> str:
    """Return the lines of a file that are not comments."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def _join(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the lines, with each line that ends in a backslash joined to the next.

    A comment continues only in another comment.
    """
    whole: list[tuple[int, str]] = []
    goes_on = False
    for number, line in lines:
        words = line.strip()
        if goes_on and words.startswith("#") == whole[-1][1].startswith("#"):
            whole[-1] = (whole[-1][0], f"{whole[-1][1]} {words.removesuffix(chr(92)).strip('# ')}")
        else:
            whole.append((number, words.removesuffix("\\").strip()))
        goes_on = words.endswith("\\")
    return whole


def _check_dockerfile(lines: list[tuple[int, str]], driver: str) -> Iterator[Fault]:
    orders = [(number, *line.split(None, 1)) for number, line in lines if len(line.split(None, 1)) == 2 and line[0] != "#"]
    instructions = [(number, order.upper(), arguments) for number, order, arguments in orders]
    stages: set[str] = set()
    defaults: dict[str, str] = {}
    if not any(order == "FROM" for _, order, _ in instructions):
        yield Fault("no-base", 1, "it has no FROM: which image is it built from?")
    for number, order, arguments in instructions:
        if order == "FROM":
            image, *extra = _fill_in([word for word in arguments.split() if not word.startswith("--")] or [arguments], defaults)
            if image not in stages:
                yield from _check_base(number, image, driver)
            stages.update(extra[1:2])
        elif order == "RUN" or order not in INSTRUCTIONS:  # or a line of a RUN <<END
            yield from _check_install(number, arguments if order == "RUN" else f"{order.lower()} {arguments}", driver)
        elif order in ("ENV", "ARG") and SECRET.search(arguments):
            yield Fault(
                "secret", number, f"{arguments.split('=')[0].split()[0]} stays in the image for everybody: pass it at run time"
            )
        elif order == "ARG":
            defaults.update([arguments.partition("=")[::2]])
        elif order in ("COPY", "ADD"):
            yield from _check_copy(number, _plain(arguments).split())
    yield from _check_users(instructions, lines[-1][0] if lines else 1)
    yield from _check_shared_memory(lines)


def _check_shared_memory(lines: list[tuple[int, str]]) -> Iterator[Fault]:
    """Yield the commands in comments that start a container with too little shared memory."""
    for number, line in lines:
        if line.startswith("#") and "docker run" in line and "--shm-size" not in line and "--ipc" not in line:
            yield Fault(
                "shared-memory", number, "docker gives 64 MiB of /dev/shm: workers and NCCL need --shm-size or --ipc=host"
            )


def _fill_in(words: list[str], defaults: dict[str, str]) -> list[str]:
    """Return the words of a FROM, with variables replaced by the values of the ARG lines before it."""
    return [re.sub(r"\$\{?(\w+)\}?", lambda name: defaults.get(name[1], name[0]), word) for word in words]


def _plain(arguments: str) -> str:
    """Return the words of an instruction whose arguments are a list: ["pip", "install"]."""
    return re.sub(r'[\[\]",]+', " ", arguments) if arguments.startswith("[") else arguments


def _check_users(instructions: list[tuple[int, str, str]], last: int) -> Iterator[Fault]:
    """Yield a fault if the last stage's user is root, or does not exist in the image.

    A stage that is built on another stage keeps its user.
    """
    stages: dict[str, tuple[str, str]] = {}
    stage = base = user = ""
    for number, order, arguments in instructions:
        words = [word for word in arguments.split() if not word.startswith("--")] or [arguments]
        if order == "FROM":
            base, user = stages.get(words[0], (words[0], ""))
            stage = words[2] if len(words) > 2 else ""
        elif order == "USER":
            user, last = words[0].split(":")[0], number
        stages[stage] = (base, user)
    if user in ("", "root", "0"):
        yield Fault("root", last, "the program runs as root: add a user and a USER line after the last RUN")
        return
    commands = " ".join(arguments for _, order, arguments in instructions if order == "RUN" or order not in INSTRUCTIONS)
    is_known = user in SYSTEM_USERS or re.match(r"\d|\$", user) or re.search(rf"(?<!\w){re.escape(user)}(?!\w)", commands)
    if PLAIN_BASE.match(base) and not is_known:
        yield Fault("root", last, f"the image has no user {user}, so docker refuses to start it: create it first, with useradd")


def _check_definition(lines: list[tuple[int, str]], driver: str) -> Iterator[Fault]:
    section, bodies = "", dict.fromkeys(("%post", "%environment", "%runscript"), "")
    for number, text in _join(lines):
        if text.startswith("%"):
            section = text.split()[0]
        elif text.startswith("#"):
            continue
        elif match := re.match(r"From\s*:\s*(\S+)", text, re.IGNORECASE):
            yield from _check_base(number, match[1], driver)
        elif section == "%post":
            yield from _check_install(number, text, driver)
        elif section == "%environment" and SECRET.search(text):
            yield Fault("secret", number, "a secret in %environment stays in the image for everybody: pass it at run time")
        elif section == "%files" and text:
            yield from _check_copy(number, [*text.split(), "."][: max(2, len(text.split()))])
        if section in bodies and not text.startswith("%"):
            bodies[section] += f"\n{text}"
    yield from _check_environments(bodies, lines[-1][0] if lines else 1)


def _check_environments(bodies: dict[str, str], last: int) -> Iterator[Fault]:
    """Yield the virtual environments of %post that no other section puts into PATH."""
    for place in re.findall(r"-m venv (?:-\S+ )*(\S+)", bodies["%post"]):
        if f"{place}/bin" not in bodies["%environment"] + bodies["%runscript"]:
            yield Fault(
                "no-environment",
                last,
                f"the program does not find what %post installed: put {place}/bin into PATH in %environment",
            )


def _check_base(number: int, image: str, driver: str) -> Iterator[Fault]:
    name, _, digest = image.partition("@")
    if image.lower() == "scratch":
        return
    tag = name.rsplit("/", 1)[-1].partition(":")[2]
    if tag in ("", "latest") and not digest.startswith("sha256:"):
        yield Fault("latest", number, f"{image} may be a different image tomorrow: name a version")
    elif match := re.match(r"(\d+)\.(\d+)", tag) if "cuda" in name.removesuffix(tag) else re.search(r"cuda(\d+)\.(\d+)", tag):
        newest = newest_cuda(driver)
        if int(match[1]) > newest[0]:  # a newer minor version usually runs
            complaint = f"CUDA {match[1]}.{match[2]} needs a newer driver than {driver}, which supports {newest[0]}.{newest[1]}"
            yield Fault("cuda", number, complaint)


def _check_install(number: int, command: str, driver: str) -> Iterator[Fault]:
    command = re.sub(r"--mount=\S+", "", _plain(command))  # a secret that is mounted leaves nothing behind
    for words in PIP.findall(command):
        for extent in re.findall(r"(?:^|\s)[\"']?torch(?:\[[\w,]*\])?(?![\w.-])([^\s\"']*(?:\s*@\s*\S+)?)", words):
            if not re.search(r"==|~=|<|@", extent):
                yield Fault(
                    "torch",
                    number,
                    "torch without a version may be a different one tomorrow, and need a different CUDA: name one",
                )
            elif (cuda := _find_cuda_of_torch(extent, words)) > newest_cuda(driver)[0]:
                yield Fault("torch-cuda", number, _describe_cuda_of_torch(extent, cuda, driver))
    if SECRET.search(command):
        yield Fault("secret", number, "a secret in a RUN line stays in the image's history: pass it at run time")


def _find_cuda_of_torch(extent: str, words: str) -> int:
    """Return the major version of the CUDA that comes with torch: its index or its suffix names it, or the version decides.

    0 means that nothing names it.
    """
    if build := re.search(r"\+(cu\d+|cpu)", extent) or re.search(r"/whl/(?:nightly/)?(cu\d+|cpu)", words):
        return int(build[1][2:4]) if build[1].startswith("cu") else 0
    version = re.search(r"[=~]=\s*(\d+)\.(\d+)", extent)
    return 13 if version and (int(version[1]), int(version[2])) >= FIRST_TORCH_WITH_CUDA_13 else 0


def _describe_cuda_of_torch(extent: str, cuda: int, driver: str) -> str:
    newest = newest_cuda(driver)
    return (
        f"torch{extent} brings CUDA {cuda}, but driver {driver} supports {newest[0]}.{newest[1]}: take an earlier torch, or "
        f"its wheels for CUDA {newest[0]}"
    )


def _check_copy(number: int, words: list[str]) -> Iterator[Fault]:
    if any(word.startswith("--from") for word in words):
        return  # copied from another stage, not from this computer
    sources = [word for word in words[:-1] if not word.startswith("--")]
    for source in sources:
        if DATA.search(source):
            yield Fault(
                "data", number, f"{source} becomes a layer of the image for everybody who pulls it: mount it at run time"
            )
