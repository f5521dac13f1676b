"""The torchrun launcher: the same command on each node, with a meeting point at the head's private address.

The rendezvous is static: the node ranks are known, so the nodes need not agree on them. This saves about a second compared with
c10d.

The node's agent replaces `{rank}` with the wrapper that writes a separate log for every rank. Without `{rank}`, the command
also works by hand.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gpucourse.errors import UsageError
from gpucourse.launch.launcher import LaunchRequest, TorchrunOptions
from gpucourse.launch.planning import RANK, RankLauncher, Rendezvous, max_restarts_of
from gpucourse.model.drill import HOWS
from gpucourse.model.node import Node
from gpucourse.model.record import MAX_RESTARTS

RESTARTS_OPTION = "--max-restarts="

_MEETING = "gpucourse chooses where the ranks meet; the range of ports is rendezvous_ports in gpucourse.yaml"
_LOGS = "each rank has its own log: gpucourse logs --rank 1"
_SCRIPT = "gpucourse run --script FILE names the file that runs"
_OURS = {
    "--nnodes": "gpucourse run --nodes 2",
    "--nproc-per-node": "gpucourse run --procs 2",
    "--node-rank": "the nodes are numbered in the order of gpucourse status",
    **dict.fromkeys(("--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf", "--standalone"), _MEETING),
    **dict.fromkeys(("--master-addr", "--master-port", "--local-addr"), _MEETING),
    **dict.fromkeys(("--log-dir", "-r", "--redirects", "-t", "--tee", "--local-ranks-filter", "--logs-specs"), _LOGS),
    **dict.fromkeys(("-m", "--module", "--no-python", "--run-path"), _SCRIPT),
    **dict.fromkeys(("-h", "--help"), "on a node: gpucourse ssh 3 -- python3 -m torch.distributed.run --help"),
}
"""torchrun's options that only gpucourse may set. Each text explains how the value is chosen."""
_WITH_VALUE = (
    "--max-restarts",
    "--monitor-interval",
    "--start-method",
    "--event-log-handler",
    "--role",
    "--duplicate-stdout-filters",
    "--duplicate-stderr-filters",
    "--numa-binding",
    "--signals-to-handle",
    "--shutdown-timeout",
)


class Torchrun(RankLauncher):
    """The launcher that starts torchrun on each node. torchrun starts the ranks there."""

    name = "torchrun"
    title = "torchrun on every node"
    starts_ranks = True
    can_restart = True
    drills = HOWS
    packages = ("torch",)

    def object_to(self, *, torchrun: str, handed_on: Sequence[str], profile: bool) -> UsageError | None:
        """Return None, because torchrun supports all of these options."""
        del torchrun, handed_on, profile
        return None

    def start(
        self, request: LaunchRequest, node: Node, processes: int, rendezvous: Rendezvous
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the argument list of the command that one node starts. It uses `python -m torch.distributed.run`, because
        `torchrun` might not be on the PATH."""
        max_restarts = max_restarts_of(request)
        restarts = (f"{RESTARTS_OPTION}{max_restarts}",) if max_restarts else ()
        argv = (
            node.python,
            "-m",
            "torch.distributed.run",
            f"--nnodes={rendezvous.nodes}",
            f"--nproc-per-node={processes}",
            f"--node-rank={rendezvous.node_rank}",
            f"--master-addr={rendezvous.address}",
            f"--master-port={rendezvous.port}",
            *restarts,
            *request.torchrun_options.words,
            "--no-python",
            RANK,
            node.python,
            "-u",
            request.script,
            *request.arguments,
        )
        return argv, {}


def read_options(text: str) -> TorchrunOptions:
    """Return the options that were typed after --torchrun. An unknown option is passed to torchrun, which refuses it by name.

    Raises UsageError if a quote is not closed, if gpucourse itself sets an option, or if a word is not an option.
    """
    try:
        waiting = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--torchrun {text!r}: {error}", hint=_EXAMPLE) from error
    words: list[str] = []
    restarts: int | None = None
    while waiting:
        option, equals, value = waiting.pop(0).partition("=")
        name = _name_option(option)
        if name in _WITH_VALUE and not equals:
            if not waiting:
                raise UsageError(f"--torchrun: {name} needs a value", hint=_EXAMPLE)
            equals, value = "=", waiting.pop(0)
        if name == "--max-restarts":
            restarts = _read_restarts(value)
        else:
            words.append(f"{name}{equals}{value}")
    return TorchrunOptions(words=tuple(words), max_restarts=restarts)


_EXAMPLE = 'gpucourse run --script train.py --torchrun "--max-restarts=2 --monitor-interval=1"'


def _name_option(option: str) -> str:
    """Return the option as torchrun's help writes it. Abbreviations such as --nnode are completed, because torchrun accepts
    them.

    Raises UsageError if gpucourse itself sets the option, or if the word is not an option.
    """
    if not option.startswith("-") or option in {"-", "--"}:
        raise UsageError(
            f"--torchrun: {option!r} is not an option of torchrun", hint=f"{_EXAMPLE}; arguments of the script come after --"
        )
    name = option.replace("_", "-")
    long = name.startswith("--")
    explanation = _OURS.get(name) or (_OURS.get(name[:2]) if not long else None)
    if explanation is None and long and name not in _WITH_VALUE:
        short = [candidate for candidate in (*_OURS, *_WITH_VALUE) if candidate.startswith(name)]
        if len(short) == 1 and short[0] in _WITH_VALUE:
            return short[0]
        explanation = next((_OURS[candidate] for candidate in short if candidate in _OURS), None)
    if explanation is not None:
        raise UsageError(f"--torchrun: gpucourse sets {option} itself", hint=explanation)
    return name


def _read_restarts(value: str) -> int:
    if value.isascii() and value.isdigit() and len(value) < 10 and int(value) <= MAX_RESTARTS:
        return int(value)
    raise UsageError(f"--torchrun: --max-restarts={value} is not a whole number from 0 to {MAX_RESTARTS}", hint=_EXAMPLE)


def format_typed(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the argument list that a person would type, without the wrapper's placeholder. A second `{rank}` belongs to the
    script."""
    words = list(argv)
    if RANK in words:
        words.remove(RANK)
    return tuple(words)
