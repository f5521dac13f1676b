"""The environment of a rank: nothing important is left to a default that differs from machine to machine."""

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
    "MASTER_ADDR": "gpucourse chooses the node where the ranks meet: the first",
    "MASTER_PORT": "gpucourse chooses a free port; the range is rendezvous_ports in gpucourse.yaml",
    "PYTHONUNBUFFERED": "it is always set: logs arrive line by line",
    "HOME": "the files of a run are below the home folder of the node",
}
"""The variables that only gpucourse may set, and what determines their values."""
_HELP = "gpucourse run --help lists the options that set it"
_OWN_STARTS = {
    **dict.fromkeys(("GPUCOURSE_", "TORCHELASTIC_"), _HELP),
    **dict.fromkeys(
        ("SLURM_", "SBATCH_"),
        "export it in ~/.bashrc on the node that accepts jobs, where Slurm's commands read it; or write an #SBATCH line in a "
        "batch file of your own; a partition for one run of module 2: --set partition=NAME",
    ),
    "PET_": "torchrun reads its options from it, too: gpucourse run --torchrun '--max-restarts=2'",
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
    """Return the variables that set the network interface for collectives. By default, gloo binds to the address that the
    host's name resolves to.

    `nccl` has the additional variables for NCCL, which are needed only if there are GPUs.
    """
    if not gpus:
        return {"GLOO_SOCKET_IFNAME": interface}
    return {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface, **nccl}


def read_variables(words: Sequence[str], local: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read the words after each --env: return the values, by name, and the names whose values are copied from `local`, this
    computer's environment, when the run starts.

    Raises UsageError for a word that is not a name, for a name that was typed twice, is not set here or is set by gpucourse,
    and for a value that is not text.
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
    """Return the value, which the files of the run will contain. Raises UsageError for bytes that are not text."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"--env {name}: the value is not text in UTF-8",
            hint=f"export {name}=... first: --env {name} passes on any bytes",
        ) from error
    return value


def _refuse_name(name: str) -> None:
    """Refuse a name that no variable can have, and one that gpucourse sets. Raises UsageError."""
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
