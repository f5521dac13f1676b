"""The client's side of the job protocol: send requests to the node's agent and read its typed answers."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from gpucourse.errors import GpucourseError, MissingError, StorageError, UnreachableError, UsageError
from gpucourse.model.node import Node
from gpucourse.model.record import NodeExit, RankExit
from gpucourse.outside import OutsideError
from gpucourse.outside.documents import parse_typed
from gpucourse.outside.names import printable
from gpucourse.ports import CommandResult, Link
from gpucourse.remote import answers, slurm_refusals
from gpucourse.remote.agent.tar import make_member, write_tar
from gpucourse.remote.exchange import EndedEarly
from gpucourse.remote.login_shell import last_words
from gpucourse.remote.patience import AFTER_CANCEL_S, ANSWER_S

T = TypeVar("T")

_NO_AGENT = 97
RUNS_IN_REQUEST = 2000
"""The maximum number of runs in one request. Their ids are part of the command, which may have 128 KiB at most, and the answer
must not exceed the limits of `answers.parse`."""

_END_S = 0.5
"""The seconds that a busy node needs to end one of several runs, measured under Slurm at a load of 50."""

# A tar that was cut between two members looks complete to tar: only the last member shows that it is whole. If two
# commands install the agent at the same time, the second folder ends up inside the first, whole and unused.
_INSTALL = (
    "set -e; umask 077; mkdir -p .gpucourse; aside=$(mktemp -d .gpucourse/agent-new.XXXXXX); trap 'rm -rf \"$aside\"' EXIT; "
    'tar -xf - -C "$aside"; [ -e "$aside/__main__.py" ]; mv "$aside" {folder}'
)


def call(link: Link, verb: str, kind: type[T], *args: str, stdin: bytes = b"", timeout_s: float = ANSWER_S) -> T:
    """Send a request to the agent on the node and return its typed answer. If the agent is missing, push it first.

    Raises the error in the answer, or NodeUntrusted if the answer is invalid.
    """
    result = link.run(command(link.node, verb, *args), stdin=stdin, timeout_s=timeout_s)
    if result.code == _NO_AGENT:
        install(link)
        result = link.run(command(link.node, verb, *args), stdin=stdin, timeout_s=timeout_s)
    return answer(link.node, verb, kind, result)


def answer(node: Node, verb: str, kind: type[T], result: CommandResult) -> T:
    """Return the agent's answer, or raise the error in it."""
    if result.code == 0:
        return answers.parse(node.label, f"its answer to {verb}", result.stdout, kind)
    if result.code in (126, 127):
        raise _make_no_python_error(node)
    if (complaint := _complaint(result.stdout)) is not None:
        raise _make_error(node, complaint)
    raise failure(node, verb, result.code, result.stderr)


def failure(node: Node, verb: str, code: int, stderr: bytes) -> GpucourseError:
    """Return the error for a command that failed on the node before the agent could answer."""
    message = last_words(stderr, 800) or "nothing"
    if b"No space left" in stderr or b"Disk quota" in stderr:
        return StorageError(
            f"{node.label}: no space left on the node's disk", hint=f"gpucourse ssh, then df -h (it printed: {message})"
        )
    if b"Read-only file system" in stderr:
        return StorageError(
            f"{node.label}: the home folder there cannot be written: read-only file system",
            hint=f"ask the administrator of the machine for a writable home folder (it printed: {message})",
        )
    return UnreachableError(
        f"{node.label}: {verb} ended with code {code} on the node and printed: {message}",
        hint="gpucourse ssh opens a shell on the node; gpucourse deploy repairs it",
    )


def start(link: Link, spec: Mapping[str, object], *, timeout_s: float = ANSWER_S) -> dict[str, Any]:
    """Start a run, and return the node's answer. The request may be repeated if the answer was lost, because a run never starts
    twice."""
    return call(link, "start", dict[str, Any], stdin=json.dumps(spec).encode(), timeout_s=timeout_s)


def states(link: Link, run_ids: Sequence[str]) -> dict[str, answers.JobState]:
    """Return the states of at most RUNS_IN_REQUEST runs on this node, in one request.

    If the supervisor of a run has vanished, this request ends the run's remaining processes and records the end of the run. If
    several runs are requested, the result omits those that Slurm does not report on.
    """
    states = call(link, "states", dict[str, answers.JobState], *run_ids)
    _check_requested(link, "states", states, run_ids)
    return states


def cancel(link: Link, run_ids: Sequence[str], grace_s: float) -> dict[str, answers.State]:
    """End every process of at most RUNS_IN_REQUEST runs on this node: send TERM, and KILL after `grace_s`. Return the runs'
    last states. The request may be repeated.

    If several runs are requested, the result omits those that Slurm could not end.
    """
    within_s = ANSWER_S + max(grace_s, min(_END_S * len(run_ids), AFTER_CANCEL_S))
    results = call(link, "cancel", dict[str, answers.State], f"{grace_s:g}", *run_ids, timeout_s=within_s)
    _check_requested(link, "cancel", results, run_ids)
    return results


def _check_requested(link: Link, verb: str, reported: Iterable[str], requested: Sequence[str]) -> None:
    """Raise NodeUntrusted if the node reports on other runs, or if exactly one run was requested and the node does not report
    on it."""
    if not set(reported) <= set(requested) or (len(requested) == 1 and not reported):
        reason = "it does not report on the runs in the request"
        raise answers.make_untrusted_error(link.node.label, f"its answer to {verb}", reason)


def list_activities(link: Link, run_id: str, *, timeout_s: float = 10.0) -> dict[int, answers.Activity]:
    """Return what each rank of a run is doing on this node right now, or an empty dict if that is unknown."""
    return call(link, "look", dict[int, answers.Activity], run_id, timeout_s=timeout_s)


def probe(
    link: Link,
    modules: Sequence[str],
    ports: tuple[int, int],
    *,
    programs: Sequence[str] = (),
    versions: bool = False,
) -> answers.Probe:
    """Return the node's Python, modules, programs, free ports and cores.

    `versions`: also return the versions of the modules, which takes longer. Raises NodeUntrusted if the answer names a module,
    program or port that is not in the request.
    """
    request = {
        "python": link.node.python,
        "modules": list(modules),
        "programs": list(programs),
        "versions": versions,
        "first_port": ports[0],
        "last_port": ports[1],
    }
    # The request is an argument, because the first command on a connection waits a round trip for its input.
    start_s, asked_at = time.monotonic(), time.time()
    answer = call(link, "probe", answers.Probe, json.dumps(request))
    answer.seconds, answer.clock_skew_s = time.monotonic() - start_s, estimate_skew(asked_at, answer.clock)
    has_others = set(answer.modules) != set(modules) or not set(answer.missing_programs) <= set(programs)
    if has_others or not all(ports[0] <= port <= ports[1] for port in answer.free_ports):
        raise answers.make_untrusted_error(
            link.node.label, "its answer to probe", "it reports modules, programs or ports that are not in the request"
        )
    return answer


def estimate_skew(asked_at: float, clock: float) -> float:
    """Return the smallest possible difference between a node's clock and this computer's. It is negative if the node's clock is
    behind.

    The clock was read between `asked_at` and now, so any time in this span counts as no difference.
    """
    return round(max(clock - time.time(), min(0.0, clock - asked_at)), 3)


@contextmanager
def stream_verb(
    link: Link, verb: str, *args: str, stdin: bytes = b"", silence_s: float = ANSWER_S
) -> Iterator[Iterator[bytes]]:
    """Send a verb whose answer is a stream (`follow`, `pack`), and yield the stream. If the agent is missing, push it first."""
    line = command(link.node, verb, *args)
    try:
        with ExitStack() as stack:
            pieces = stack.enter_context(link.stream(line, stdin=stdin, silence_s=silence_s))
            try:
                first = next(pieces, b"")
            except EndedEarly as error:
                if error.command_code != _NO_AGENT:
                    raise
                install(link)
                first, pieces = b"", stack.enter_context(link.stream(line, stdin=stdin, silence_s=silence_s))
            yield chain((first,), pieces)
    except EndedEarly as error:
        if (complaint := _complaint(error.stderr)) is None:
            raise  # killed with its connection, or by a clean-up there: worth another try
        raise _make_error(link.node, complaint) from error


def _complaint(output: bytes) -> answers.AgentComplaint | None:
    """Return the error message that the agent printed last and the kind of the error, or None if it printed none."""
    with suppress(OutsideError):
        return parse_typed(output.rstrip().rpartition(b"\n")[2], answers.AgentComplaint)
    return None


def install(link: Link) -> None:
    """Push the agent to the node. Two pushes at the same time do no harm."""
    result = link.run(_INSTALL.format(folder=_FOLDER), stdin=_BUNDLE)
    if result.code != 0:
        raise failure(link.node, "install", result.code, result.stderr)


def command(node: Node, verb: str, *args: str) -> str:
    """Return the shell command that sends a request to the agent."""
    line = shlex.join([verb, *args])
    # A node that ends the processes of a lost connection spares those with this variable: here, the supervisor.
    mark = "GPUCOURSE_RUN_DIR=supervisor " if verb == "start" else ""
    program = f'{shlex.quote(node.python)} -I -S "$HOME"/{_FOLDER}'
    return f"[ -e {_FOLDER}/__main__.py ] || exit {_NO_AGENT}; {mark}exec {program} {line}"


def node_exit(node: str, end: answers.NodeEnd) -> NodeExit:
    """Return the end of a run on one node, from the agent's answer."""
    return NodeExit(node=node, code=end.code, reason=end.reason, seconds=end.seconds, killed=end.killed)


def rank_exit(node: str, end: answers.RankEnd) -> RankExit:
    """Return the end of a rank, from the agent's answer."""
    return RankExit(node=end.node or node, rank=end.rank, code=end.code, at=end.at, restart=end.restart, group=end.group)


def _make_error(node: Node, complaint: answers.AgentComplaint) -> GpucourseError:
    message, kind = printable(complaint.error), complaint.kind
    sentence = f"{node.label}: {message}"
    if kind == "storage":
        look = "gpucourse ssh, then df -h ~ and ls -ld ~/.gpucourse"
        return StorageError(sentence, hint=f"{node.label} reports that it cannot write there. To check: {look}")
    if kind == "slurm":
        return slurm_refusals.explain(node, message)
    if kind == "cannot_start":
        return MissingError(sentence, hint="gpucourse doctor shows what the nodes lack")
    if kind == "missing":
        return UnreachableError(sentence, hint="type the command again: only what is missing is sent")
    if kind in {"refused", "absent"}:
        return UsageError(sentence)
    return UnreachableError(sentence, hint="gpucourse ssh opens a shell on the node, to see what is wrong")


def _make_no_python_error(node: Node) -> MissingError:
    return MissingError(
        f"{node.label}: there is no Python at {node.python}",
        hint="type gpucourse deploy again, with the Python that has the course's packages",
    )


def _bundle() -> bytes:
    """Return the agent and its torch extension as a tar, without bytecode, links or any other part of gpucourse."""
    place, source = "gpucourse/remote/agent", Path(__file__).parent / "agent"
    files = {}
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            name = path.relative_to(source).as_posix()
            key = name if name.startswith("torch_extension/") else f"{place}/{name}"
            files[key] = path.read_bytes()
    main = b"import sys\nfrom gpucourse.remote.agent.main import main\nsys.exit(main(sys.argv[1:]))\n"
    files |= {"gpucourse/__init__.py": b"", "gpucourse/remote/__init__.py": b"", "__main__.py": main}
    return b"".join(write_tar((make_member(name, len(content)), (content,)) for name, content in files.items()))


_BUNDLE = _bundle()
_FOLDER = f".gpucourse/agent-{sha256(_BUNDLE).hexdigest()[:16]}"
