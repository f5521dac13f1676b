"""Make the environment of a rank. Every important variable is set, because defaults differ from machine to machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpucourse.errors import UsageError
from gpucourse.model.node import Mode

NOTHING: Mapping[str, str] = {}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WAYS = {
    **dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK"), "the launcher numbers the ranks"),
    "WORLD_SIZE": "gpucourse run --nodes 2 --procs 2",
    "LOCAL_WORLD_SIZE": "gpucourse run --procs 2",
    "GROUP_WORLD_SIZE": "gpucourse run --nodes 2",
    "ROLE_WORLD_SIZE": "gpucourse run --nodes 2 --procs 2",
    "MASTER_ADDR": "gpucourse chooses the node where the ranks meet: it is always the first node",
    "MASTER_PORT": "gpucourse chooses a free port; the range is rendezvous_ports in gpucourse.yaml",
    "PYTHONUNBUFFERED": "it is always set, so that logs arrive line by line",
    "HOME": "the files of a run are below the home folder of the node",
}
"""The variables that only gpucourse may set. Each text explains how the value is chosen."""
_HELP = "gpucourse run --help lists the options that set it"
_OWN_STARTS = {
    **dict.fromkeys(("GPUCOURSE_", "TORCHELASTIC_"), _HELP),
    **dict.fromkeys(
        ("SLURM_", "SBATCH_"),
        "export it in ~/.bashrc on the node that accepts jobs, where Slurm's commands read it, or put an #SBATCH line in your "
        "own batch file. To choose a partition for a single run of module 2, use --set partition=NAME",
    ),
    "PET_": "torchrun also reads its options from it: gpucourse run --torchrun '--max-restarts=2'",
}


def make_script_variables(*, mode: Mode, backend: str, collective_timeout_s: float) -> dict[str, str]:
    """Return the variables that every exercise script may read."""
    return {
        "GPUCOURSE_MODE": mode,
        "GPUCOURSE_BACKEND": backend,
        "GPUCOURSE_COLLECTIVE_TIMEOUT_S": f"{collective_timeout_s:g}",
        "PYTHONUNBUFFERED": "1",
    }


def make_network_variables(interface: str, *, gpus: int, nccl: Mapping[str, str] = NOTHING) -> dict[str, str]:
    """Return the variables that set the network interface for collectives. Without them, gloo would use the address that the
    host's name resolves to.

    `nccl`: additional variables for NCCL, which are needed only if there are GPUs.
    """
    if not gpus:
        return {"GLOO_SOCKET_IFNAME": interface}
    return {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface, **nccl}


def read_variables(words: Sequence[str], local: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read the words after each --env. Return the values that were typed, by name, and the names that were typed without a
    value.

    Variables without a typed value are copied from `local`, this computer's environment, when the run starts.

    Raises UsageError if a word is not a name, if a name was typed twice, is not set here or is set by gpucourse, or if a value
    is not text.
    """
    values: dict[str, str] = {}
    names: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        _refuse_name(name)
        if name in values or name in names:
            raise UsageError(f"--env {name} was typed twice", hint=f"type {name} once")
        if equals:
            values[name] = _check_text(name, value)
        elif name in local:
            names.append(name)
        else:
            raise UsageError(
                f"--env {name}: no variable of that name is set here",
                hint=f"export {name}=... first, or --env {name}=VALUE, which is kept in the files of the run",
            )
    return values, tuple(names)


def _check_text(name: str, value: str) -> str:
    """Return the value that was typed for `name`. Raises UsageError if it is not text in UTF-8, because files of the run will
    contain it."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"--env {name}: the value is not text in UTF-8",
            hint=f"export {name}=... first: --env {name} passes on any bytes",
        ) from error
    return value


def _refuse_name(name: str) -> None:
    """Raise UsageError if no variable can have that name, or if gpucourse sets the variable."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--env {name[:80]!r}: not the name of a variable", hint="--env NAME=VALUE, such as --env NCCL_DEBUG=INFO"
        )
    ways = [_WAYS[name]] if name in _WAYS else [way for start, way in _OWN_STARTS.items() if name.startswith(start)]
    if ways:
        raise UsageError(
            f"--env {name}: gpucourse, the launcher or Slurm sets it",
            hint=ways[0],
        )
