"""The environment of a rank: nothing that matters is left to a default that differs from machine to machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpucourse.model.node import Mode, Node

NOTHING: Mapping[str, str] = {}


def choose_backend(nodes: Sequence[Node]) -> str:
    """NCCL where every node has a GPU, gloo otherwise."""
    return "nccl" if all(node.gpus for node in nodes) else "gloo"


def make_script_variables(*, mode: Mode, backend: str, collective_timeout_s: float) -> dict[str, str]:
    """What every exercise script may read."""
    return {
        "GPUCOURSE_MODE": mode,
        "GPUCOURSE_BACKEND": backend,
        "GPUCOURSE_COLLECTIVE_TIMEOUT_S": f"{collective_timeout_s:g}",
        "PYTHONUNBUFFERED": "1",
    }


def make_network_variables(interface: str, *, gpus: int, nccl: Mapping[str, str] = NOTHING) -> dict[str, str]:
    """The interface that collectives use. Left to itself gloo binds whatever the host's name resolves to.

    `nccl` is what NCCL has to be told besides, where there are GPUs.
    """
    if not gpus:
        return {"GLOO_SOCKET_IFNAME": interface}
    return {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface, **nccl}


def make_thread_variables(cores: int, *, sharing: int) -> dict[str, str]:
    """Threads a rank: the cores divided by the ranks that share them. Unset, ranks on one machine slow each other 7 times."""
    return {"OMP_NUM_THREADS": str(max(1, cores // max(1, sharing)))}
