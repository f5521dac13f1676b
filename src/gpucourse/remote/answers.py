"""The types of the agent's answers. A value out of range raises ValueError. Text for the screen is shortened and made
printable."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar

from gpucourse.errors import NodeUntrusted
from gpucourse.model.record import MAX_RANKS, RankCount, Restarts
from gpucourse.model.slurm import JobRow, LaterJob
from gpucourse.outside import OutsideError
from gpucourse.outside.documents import Meta, convert, parse_json
from gpucourse.outside.names import is_shown, printable
from gpucourse.remote.agent import frames

T = TypeVar("T")

State = Literal["absent", "preparing", "running", "ended", "lost"]
Activity = Literal["stopped", "computing", "waiting"]

MAX_BYTES = 1 << 20  # the longest answer to one request; listings of outputs have their own limit
MAX_ITEMS = 60_000
MAX_FRAME = 8 << 20  # the longest message of a run: the longest valid one has 128 KiB of a log, or the ends of 10,000 jobs
MAX_END_ITEMS = 400_000
MAX_JOBS = 10_000
MAX_ENVIRONMENT = 1 << 16  # a machine with 16 GPUs describes itself in 4 KiB
_FIRST_YEARS_S = 1e11  # seconds since 1970: the year 5138; Python's dates end in 9999
MAX_CLOCK_S = float(1 << 32)  # the year 2106; a wrong clock usually shows an early year, such as 1970
_MAX_HOURS = 1e9
ExitCode = Annotated[int, Meta(ge=0, le=255)]
Rank = Annotated[int, Meta(ge=0, lt=MAX_RANKS)]
Duration = Annotated[float, Meta(ge=0, le=_FIRST_YEARS_S)]
Clock = Annotated[float, Meta(ge=0, le=MAX_CLOCK_S)]

_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.)){0,62}")
_INTERFACE = re.compile(r"[A-Za-z0-9_.:@-]{1,32}")
_VERSION = re.compile(r"\d{1,3}(\.\d{1,3}){0,3}[a-z0-9+]{0,12}")


def parse(node: str, subject: str, data: bytes, kind: type[T], *, max_bytes: int = MAX_BYTES, max_items: int = MAX_ITEMS) -> T:
    """Parse a node's message into `kind`. Raises NodeUntrusted, which names the node and the `subject` of the message."""
    try:
        return convert(parse_json(data, max_bytes=max_bytes, max_items=max_items), kind)
    except OutsideError as error:
        raise make_untrusted_error(node, subject, error) from error


def make_untrusted_error(node: str, subject: str, error: object) -> NodeUntrusted:
    """Return the error for a node's message that cannot be used."""
    return NodeUntrusted(
        f"{node}: {subject} cannot be used: {printable(str(error))}",
        hint="it was not used. Another program may be answering there: gpucourse status, then gpucourse deploy",
    )


def host_name(text: str) -> str:
    """Return the text if it is a valid name of a machine, which may become part of a file name. Raises ValueError if it is
    not."""
    if not _HOST.fullmatch(text):
        raise ValueError(f"{printable(text, 80)!r} is not the name of a machine")
    return text


def folder(path: str) -> str:
    """Return the path if it is absolute and printable. Raises ValueError if it is not."""
    if not is_folder(path):
        raise ValueError(f"{printable(path, 80)!r} is not the path of a folder")
    return path


def is_folder(path: str) -> bool:
    """Return whether the text is an absolute, printable path of at most 4,096 characters."""
    return path.startswith("/") and len(path) <= 4096 and is_shown(path)


def interface(name: str) -> str:
    """Return the text if it is a valid name of a network interface. Raises ValueError if it is not."""
    if not _INTERFACE.fullmatch(name):
        raise ValueError(f"{printable(name, 80)!r} is not the name of a network interface")
    return name


def check_range(value: float, minimum: float, maximum: float, subject: str) -> None:
    """Check that a number is in its range. Raises ValueError."""
    if not minimum <= value <= maximum:
        raise ValueError(f"{subject} is not between {minimum:g} and {maximum:g}")


def read_frames(node: str, pieces: Iterator[bytes]) -> Iterator[tuple[bytes, int, int, bytes]]:
    """Yield the frames in a stream of bytes, and drop an incomplete frame at the end. Raises NodeUntrusted if a frame is too
    long."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        position = 0
        while len(buffer) - position >= frames.HEADER.size:
            kind, stream, offset, length = frames.HEADER.unpack_from(buffer, position)
            if length > MAX_FRAME:
                raise make_untrusted_error(
                    node, "its report on the run", f"a message of {length} bytes; the limit is {MAX_FRAME}"
                )
            start = position + frames.HEADER.size
            if len(buffer) - start < length:
                break
            yield kind, stream, offset, bytes(buffer[start : start + length])
            position = start + length
        del buffer[:position]


@dataclass(kw_only=True)
class AgentComplaint:
    """The agent's message that says why it could not do what the client requested."""

    error: str
    kind: str = ""


@dataclass(kw_only=True)
class NodeEnd:
    """The end of a run on a node.

    `jobs`: the run's Slurm jobs.
    `later`: the jobs that these submitted and that have not ended.
    """

    code: ExitCode
    reason: Literal["exited", "cancelled", "timed_out", "lost"]
    seconds: Duration | None = None
    killed: Annotated[int, Meta(ge=0, le=1 << 22)] = 0
    jobs: list[JobRow] = field(default_factory=list)
    later: list[LaterJob] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.jobs, self.later = check_rows(self.jobs), check_later_jobs(self.later)


@dataclass(kw_only=True)
class RankEnd:
    """The end of a rank, as the agent reports it. `node` is empty if the rank ran on the reporting node."""

    rank: Rank
    code: ExitCode
    at: Clock
    node: str = ""
    restart: Restarts = 0
    group: RankCount | None = None

    def __post_init__(self) -> None:
        if self.node:
            host_name(self.node)


@dataclass(kw_only=True)
class LogName:
    """The node and the rank that a log stream belongs to.

    `node`: empty for the node that reports it.
    `rank`: None for a launcher.
    """

    node: str
    rank: Rank | None

    def __post_init__(self) -> None:
        if self.node:
            host_name(self.node)


def check_rows(rows: list[JobRow]) -> list[JobRow]:
    """Return Slurm's descriptions of jobs, with every text made printable. Raises ValueError."""
    check_range(len(rows), 0, MAX_JOBS, "the number of jobs")
    return [_check_row(row) for row in rows]


def _check_row(row: JobRow) -> JobRow:
    check_range(row.row, 0, MAX_JOBS, "the row")
    check_range(row.code or 0, 0, 255, "the exit code")
    check_range(row.waited_s or 0.0, 0, _FIRST_YEARS_S, "the time in the queue")
    check_range(row.ran_s or 0.0, 0, _FIRST_YEARS_S, "the running time")
    check_range(row.cpu_hours or 0.0, 0, _MAX_HOURS, "the number of core hours")
    check_range(row.gpu_hours or 0.0, 0, _MAX_HOURS, "the number of GPU hours")
    texts: dict[str, Any] = {name: printable(value) for name, value in vars(row).items() if isinstance(value, str)}
    return replace(row, **texts)


def check_later_jobs(later_jobs: list[LaterJob]) -> list[LaterJob]:
    """Return the jobs that a run's own jobs submitted, with every text made printable. Raises ValueError."""
    check_range(len(later_jobs), 0, MAX_JOBS, "the number of later jobs")
    if not all(job.job.isascii() and job.job.isdigit() and len(job.job) <= 12 for job in later_jobs):
        raise ValueError("the number of a later job is not a number")
    return [replace(job, name=printable(job.name, 80), state=printable(job.state, 40)) for job in later_jobs]


@dataclass(kw_only=True)
class JobState:
    """The state of a run on one node. `jobs`: its Slurm jobs, while it has not ended."""

    state: State
    exit: NodeEnd | None
    jobs: list[JobRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.jobs = check_rows(self.jobs)

    @property
    def has_ended(self) -> bool:
        """Return whether the run has ended on the node, successfully or not."""
        return self.state in {"ended", "lost"}


@dataclass(kw_only=True)
class Probe:
    """The answer to a probe of a node.

    `modules`: the version of each module, or None if the module is missing.
    `missing_programs`: the programs that are not on the node's PATH.
    `seconds`: the time that the probe took. The client adds it.
    `clock_skew_s`: how far the node's clock is ahead of this computer's, to within half of `seconds`. The client adds it.
    """

    python_version: str
    modules: dict[str, str | None]
    free_ports: Annotated[list[int], Meta(max_length=1000)]
    cores: Annotated[int, Meta(ge=1, le=1 << 16)]
    clock: Clock
    missing_programs: list[str] = field(default_factory=list)
    seconds: float = 0.0
    clock_skew_s: float = 0.0

    @property
    def missing(self) -> list[str]:
        """Return the modules that the node's Python does not find."""
        return [name for name, version in self.modules.items() if version is None]

    def __post_init__(self) -> None:
        if not _VERSION.fullmatch(self.python_version):
            raise ValueError("the version of Python is invalid")
        self.modules = {name: version and printable(version, 40) for name, version in self.modules.items()}


def addresses(by_node: dict[str, str]) -> dict[str, str]:
    """Return the IPv4 addresses of network interfaces if all are valid. Raises ValueError if they are not."""
    check_range(len(by_node), 0, 1000, "the number of network interfaces")
    for name, address in by_node.items():
        interface(name)
        ipaddress.IPv4Address(address)
    return by_node


def environment(words: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a node's description of itself, with every text shortened and made printable. Raises ValueError if it is too
    large."""
    check_range(len(json.dumps(words)), 0, MAX_ENVIRONMENT, "the length of the node's description of itself")
    return None if words is None else {printable(name, 60): _make_printable(value) for name, value in words.items()}


def _make_printable(value: object) -> object:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(name, 60): _make_printable(inner) for name, inner in value.items()}
    return [_make_printable(inner) for inner in value] if isinstance(value, list) else value
