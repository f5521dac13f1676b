"""Faults of the files that images are built from, a Dockerfile and an Apptainer definition, found by reading them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CUDA_OF_DRIVER = {525: (12, 0), 535: (12, 2), 550: (12, 4), 560: (12, 6), 570: (12, 8), 580: (13, 0), 590: (13, 1)}
"""The newest CUDA that a branch of the driver knows (NVIDIA, "CUDA Toolkit Release Notes", table of driver versions)."""
SECRET = re.compile(r"\b\w*(TOKEN|SECRET|PASSWORD|API_KEY)\w*\s*[= ]\s*\S+", re.IGNORECASE)
DATA = re.compile(r"(^|/)(data|dataset|datasets|checkpoints)(/|$)|\.(tar|tar\.gz|zip|bin|pt|safetensors)$")


@dataclass(frozen=True)
class Fault:
    """A fault by a word, where it is, and what to do about it."""

    word: str
    line: int
    says: str


def newest_cuda(driver: str) -> tuple[int, int]:
    """The newest CUDA for a driver such as 580.126: that of the newest branch that is not newer than it."""
    branch = int(driver.partition(".")[0])
    known = [number for number in CUDA_OF_DRIVER if number <= branch]
    return CUDA_OF_DRIVER[max(known)] if known else (11, 8)


def find_faults(text: str, driver: str) -> list[Fault]:
    """The faults of a Dockerfile, or of an Apptainer definition, by what its first lines are. At most 1,000 lines are read."""
    lines = list(enumerate(text.splitlines()[:1000], start=1))
    if any(re.match(r"\s*Bootstrap\s*:", line, re.IGNORECASE) for _, line in lines):
        return list(_of_definition(lines, driver))
    return list(_of_dockerfile(_join(lines), driver))


def _join(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Lines that end in a backslash go on in the next."""
    whole: list[tuple[int, str]] = []
    goes_on = False
    for number, line in lines:
        if goes_on:
            whole[-1] = (whole[-1][0], whole[-1][1] + " " + line.rstrip("\\").strip())
        else:
            whole.append((number, line.rstrip("\\").strip()))
        goes_on = line.rstrip().endswith("\\") and not line.lstrip().startswith("#")
    return whole


def _of_dockerfile(lines: list[tuple[int, str]], driver: str) -> Iterator[Fault]:
    orders = [(number, *line.split(None, 1)) for number, line in lines if len(line.split(None, 1)) == 2 and line[0] != "#"]
    named = [(number, order.upper(), rest) for number, order, rest in orders]
    if not any(order == "FROM" for _, order, _ in named):
        yield Fault("no-base", 1, "it has no FROM: from which image is it built?")
    for number, order, rest in named:
        if order == "FROM":
            yield from _of_base(number, rest.split()[0], driver)
        elif order == "RUN":
            yield from _of_install(number, rest)
        elif order in ("ENV", "ARG") and SECRET.search(rest):
            yield Fault(
                "secret", number, f"{rest.split('=')[0].split()[0]} stays in the image for everybody: give it at run time"
            )
        elif order in ("COPY", "ADD"):
            yield from _of_copy(number, rest.split())
    users = [rest for _, order, rest in named if order == "USER"]
    if not users or users[-1].split(":")[0] in ("root", "0"):
        yield Fault(
            "root", lines[-1][0] if lines else 1, "the program runs as root: add a user and a USER line behind the last RUN"
        )
    runs = [(number, line) for number, line in lines if line.startswith("#") and "docker run" in line]
    for number, line in runs:
        if "--shm-size" not in line and "--ipc" not in line:
            yield Fault(
                "shared-memory", number, "docker gives 64 MiB of /dev/shm: workers and NCCL need --shm-size or --ipc=host"
            )


def _of_definition(lines: list[tuple[int, str]], driver: str) -> Iterator[Fault]:
    section, sections = "", set()
    for number, line in lines:
        text = line.strip()
        if text.startswith("%"):
            section = text.split()[0]
            sections.add(section)
        elif match := re.match(r"From\s*:\s*(\S+)", text, re.IGNORECASE):
            yield from _of_base(number, match[1], driver)
        elif section == "%post":
            yield from _of_install(number, text)
        elif section == "%environment" and SECRET.search(text):
            yield Fault("secret", number, "a secret in %environment stays in the image for everybody: give it at run time")
        elif section == "%files" and text:
            yield from _of_copy(number, [*text.split(), "."])
    if "%environment" not in sections:
        yield Fault(
            "no-environment",
            lines[-1][0] if lines else 1,
            "without %environment the program does not find what %post installed",
        )


def _of_base(number: int, image: str, driver: str) -> Iterator[Fault]:
    if "@sha256:" in image or image.lower() == "scratch":
        return
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    if tag in ("", "latest"):
        yield Fault("latest", number, f"{image} is another image tomorrow: name a version")
    elif "cuda" in image and (match := re.match(r"(\d+)\.(\d+)", tag)):
        wanted, there = (int(match[1]), int(match[2])), newest_cuda(driver)
        if wanted > there:
            says = f"CUDA {match[0]} is newer than driver {driver} knows: at most {there[0]}.{there[1]}"
            yield Fault("cuda", number, says)


def _of_install(number: int, command: str) -> Iterator[Fault]:
    for words in re.findall(r"pip3? install([^&|;]*)", command):
        if re.search(r"(^|\s)torch(?![\w=<>~\[.-])", words):
            yield Fault(
                "torch", number, "torch without a version is another torch tomorrow, and may want another CUDA: torch==2.13.0"
            )
    if SECRET.search(command):
        yield Fault("secret", number, "what is written in a RUN line stays in the image's history: give it at run time")


def _of_copy(number: int, words: list[str]) -> Iterator[Fault]:
    sources = [word for word in words[:-1] if not word.startswith("--")]
    for source in sources:
        if DATA.search(source):
            yield Fault(
                "data", number, f"{source} becomes a layer of the image, for everybody who pulls it: mount it at run time"
            )
